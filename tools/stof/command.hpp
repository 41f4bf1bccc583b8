#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stof/stof.hpp"

// What the subcommands share. Each has a function that adds it to the command; its callback does
// the work, and throws what the library throws.
namespace stof::command {

void add_run(CLI::App& stof);
void add_plan(CLI::App& stof);
void add_compile(CLI::App& stof);
void add_tune(CLI::App& stof);
void add_calibrate(CLI::App& stof);
void add_mask(CLI::App& stof);
void add_render(CLI::App& stof);
void add_template(CLI::App& stof);
void add_cache(CLI::App& stof);
void add_model(CLI::App& stof);
void add_bench(CLI::App& stof);
void add_devices(CLI::App& stof);
void add_completion(CLI::App& stof);
void add_version(CLI::App& stof);

// What the process exits with; `stof --help` documents them.
enum ExitCode : int {
  Done = 0,
  BadInput = 1,     // a graph, mask, file or value is wrong, or a check failed
  BadUsage = 2,     // the command line is
  BadTemplate = 3,  // a template does not render or compile
  BadMachine = 4,   // no GPU, driver or compiler, or one that fails
  Bug = 5,
};

// The command line is right, and what it asks for did not hold: the text is there already.
struct Failed {
  ExitCode code = BadInput;
};

// A line, or a text that has its line ends, on stdout.
void print(std::string_view text);
// The same of JSON; what is no UTF-8 in it is replaced.
void print_json(const nlohmann::ordered_json& json);

// "NAME=VALUE" split, as --input and --dim take it. Throws GraphError in the name of `option`.
std::pair<std::string, std::string> split_assignment(std::string_view option,
                                                     const std::string& text);

// "--dim seq=317", as often as there are dims.
struct DimOptions {
  std::vector<std::string> assignments;

  void add_to(CLI::App& app);
  DimValues values() const;
  // The same, of dims that the graph has, within their ranges.
  DimValues values(const Graph& graph) const;
};

// A graph as Graph::save wrote it, and the data of its masks.
struct GraphOptions {
  std::string graph;
  std::string data;

  void add_to(CLI::App& app);
  Graph read() const;
};

// Folders of templates.
struct TemplateOptions {
  std::vector<std::filesystem::path> folders;

  void add_to(CLI::App& app);
};

// The directory of the cache.
struct CacheOptions {
  std::optional<std::filesystem::path> directory;

  void add_to(CLI::App& app);
  // With what the environment says. Throws GraphError where there is none.
  std::filesystem::path path() const;
  // A cache that cannot be written is no error of an engine, which keeps its kernels in memory.
  // Throws GraphError where it is one.
  void require_writable() const;
};

// How kernels are made, and on what they run.
struct EngineChoice {
  TemplateOptions templates;
  CacheOptions cache;
  std::string backend = "auto";
  int device = 0;
  std::string target;
  std::string device_profile;
  std::string defer_norms = "never";
  bool is_verbose = false;

  void add_backend_to(CLI::App& app);  // --backend, --device
  void add_target_to(CLI::App& app);   // --target, --device-profile
  void add_kernels_to(CLI::App& app);  // --templates, --cache-dir, --defer-norms, --verbose
  EngineOptions options() const;
  // Throws CudaError where the GPU cannot be used, for what only one can do: "tuning".
  void require_gpu(std::string_view what) const;
};

}  // namespace stof::command
