#include "command.hpp"

#include <charconv>
#include <cstdio>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/environment.hpp"
#include "cache/cache.hpp"
#include "cuda/read_device_profile.hpp"
#include "graph/ir.hpp"

namespace stof::command {

void print(std::string_view text) {
  fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
}

void print_json(const nlohmann::ordered_json& json) {
  print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::pair<std::string, std::string> split_assignment(std::string_view option,
                                                     const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
    throw CLI::ValidationError(fmt::format("{} '{}' is not NAME=VALUE", option, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void DimOptions::add_to(CLI::App& app) {
  app.add_option("--dim", assignments, "The value of a symbolic dim; once for each of them")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

DimValues DimOptions::values() const {
  DimValues values;
  for (const std::string& assignment : assignments) {
    const auto [name, text] = split_assignment("--dim", assignment);
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) {
      throw CLI::ValidationError(
          fmt::format("--dim {}: '{}' is no integer of 64 bits", name, text));
    }
    if (!values.emplace(name, value).second) {
      throw CLI::ValidationError(fmt::format("--dim {} is given twice", name));
    }
  }
  return values;
}

DimValues DimOptions::values(const Graph& graph) const {
  DimValues given = values();
  std::vector<std::string_view> known;
  for (const auto& [name, dim] : graph.ir().dims) {
    known.push_back(name);
  }
  for (const auto& [name, value] : given) {
    const auto dim = graph.ir().dims.find(name);
    if (dim == graph.ir().dims.end()) {
      throw GraphError(
          fmt::format("--dim {}={}: no dim is called '{}', there is {}", name, value, name,
                      known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
    }
    if (value < dim->second.min() || value > dim->second.max()) {
      throw GraphError(fmt::format("--dim {}={}: it is not in [{}, {}]", name, value,
                                   dim->second.min(), dim->second.max()));
    }
  }
  return given;
}

void GraphOptions::add_to(CLI::App& app) {
  app.add_option("GRAPH", graph, "The graph: what Graph::save wrote")->required();
  app.add_option("--data", data, "The data of its masks and tables, where it has any")
      ->type_name("FILE.safetensors");
}

Graph GraphOptions::read() const {
  try {
    return Graph::load(graph, data);
  } catch (const GraphError& error) {
    const std::string text = error.what();
    if (text.find(": no data ") != std::string::npos) {
      throw GraphError(text + (data.empty() ? ", which --data FILE.safetensors gives"
                                            : fmt::format(" in {}", data)));
    }
    throw;
  }
}

void TemplateOptions::add_to(CLI::App& app) {
  app.add_option("--templates", folders,
                 "A folder of templates that come before those of the library; once for each")
      ->type_name("FOLDER")
      ->allow_extra_args(false);
}

void CacheOptions::add_to(CLI::App& app) {
  app.add_option("--cache-dir", directory, "Where kernels are kept; else the environment says it")
      ->type_name("FOLDER");
}

std::filesystem::path CacheOptions::path() const {
  const auto found = directory ? directory : base::read_environment().cache_dir;
  if (!found) {
    throw GraphError(
        "cache: there is no directory: none of --cache-dir, STOF_CACHE_DIR, XDG_CACHE_HOME and "
        "HOME is set");
  }
  return *found;
}

void CacheOptions::require_writable() const {
  cache::CacheOptions options;
  options.directory = path();
  options.on_warning = [](const std::string& text) {
    throw GraphError(text + "; nothing would be kept");
  };
  const cache::Cache cache(std::move(options));
}

void EngineChoice::add_backend_to(CLI::App& app) {
  app.add_option("--backend", backend,
                 "gpu, reference (the CPU), or auto: a GPU where there is one")
      ->check(CLI::IsMember({"gpu", "auto", "reference"}))
      ->capture_default_str();
  app.add_option("--device", device, "Which GPU, as the CUDA runtime counts them")
      ->capture_default_str();
}

void EngineChoice::add_target_to(CLI::App& app) {
  app.add_option("--target", target, "Build for this target on a machine without a GPU")
      ->type_name("sm_90a");
  app.add_option("--device-profile", device_profile,
                 "Which GPU the target is taken to be; `stof devices --profiles` lists them")
      ->type_name("h200");
}

void EngineChoice::add_kernels_to(CLI::App& app) {
  templates.add_to(app);
  cache.add_to(app);
  app.add_option("--defer-norms", defer_norms,
                 "Whether products read what norms would, and scale their results")
      ->check(CLI::IsMember({"never", "if-faster", "always"}))
      ->capture_default_str();
  app.add_flag("--verbose", is_verbose, "Tell on stderr what is going on");
}

EngineOptions EngineChoice::options() const {
  static const std::map<std::string, Backend> backends = {
      {"gpu", Backend::Gpu}, {"auto", Backend::Auto}, {"reference", Backend::Reference}};
  static const std::map<std::string, NormDeferral> deferrals = {
      {"never", NormDeferral::Never},
      {"if-faster", NormDeferral::IfFaster},
      {"always", NormDeferral::Always}};
  if (!device_profile.empty() && target.empty()) {
    throw CLI::ValidationError("--device-profile '" + device_profile + "' goes with --target");
  }
  EngineOptions options = {.backend = backends.at(backend),
                           .device = device,
                           .target = target,
                           .device_profile = device_profile,
                           .template_dirs = templates.folders};
  options.cache_dir = cache.directory;
  options.norm_deferral = deferrals.at(defer_norms);
  if (is_verbose) {
    options.on_event = print_progress;
  }
  return options;
}

void EngineChoice::require_gpu(std::string_view what) const {
  try {
    cuda::read_device_profile(device);
  } catch (const CudaError& error) {
    throw CudaError(error.code(), fmt::format("GPU {} cannot be used, and {} is timing on one: {}",
                                              device, what, error.what()));
  }
}

}  // namespace stof::command
