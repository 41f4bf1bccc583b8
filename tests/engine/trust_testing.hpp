#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "stof/engine.hpp"
#include "temporary_folder.hpp"

// A template of a user's, for the tests of trust in it.
namespace stof::testing {

inline constexpr const char* kUnitRows = "norm/unit_rows.jinja";

// That of examples/04_custom_template, which is good, with a text in it replaced.
inline std::string unit_rows_template(const std::string& from = {}, const std::string& to = {}) {
  std::string text = base::read_file(
      STOF_SOURCE_DIR "/examples/04_custom_template/templates/norm/unit_rows.jinja", 1 << 20);
  if (!from.empty()) {
    text.replace(text.find(from), from.size(), to);
  }
  return text;
}

// Its rows become unit vectors.
inline Graph unit_rows_graph(std::int64_t rows = 3000) {
  Graph graph("unit_rows");
  auto x = graph.input("x", {rows, 1024}, DType::Float16);
  auto sum = graph.reduce_sum(graph.multiply(x, x), -1, /*keep_axis=*/true);
  graph.output("y", graph.divide(x, graph.sqrt(sum)));
  return graph;
}

// Folders of one user, and what an engine with them tells.
struct TrustScene {
  test::TemporaryFolder templates;
  test::TemporaryFolder cache;
  int checks = 0;
  std::vector<std::string> quarantined;  // reasons

  explicit TrustScene(const std::string& text) { write(kUnitRows, text); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = templates.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  Engine engine(EngineOptions options = {}) {
    checks = 0;
    quarantined.clear();
    options.template_dirs = {templates.path()};
    options.cache_dir = cache.path();
    options.on_event = [this](const Event& event) {
      checks += event.stage == "check" ? 1 : 0;
      if (event.stage == "quarantine") {
        quarantined.push_back(event.name + ": " + event.detail);
      }
    };
    return Engine(options);
  }
};

}  // namespace stof::testing
