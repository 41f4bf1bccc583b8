#include "base/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace stof::base {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::filesystem::path> find_cache_dir() {
  if (std::string dir = variable("STOF_CACHE_DIR"); !dir.empty()) {
    return dir;
  }
  // The XDG base directory specification has a relative path ignored.
  if (const std::filesystem::path base = variable("XDG_CACHE_HOME"); base.is_absolute()) {
    return base / "stof";
  }
  if (const std::filesystem::path home = variable("HOME"); home.is_absolute()) {
    return home / ".cache" / "stof";
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_runtime_dir() {
  const std::filesystem::path dir = variable("XDG_RUNTIME_DIR");
  return dir.is_absolute() ? std::optional(dir) : std::nullopt;
}

std::optional<std::filesystem::path> find_cuda_home() {
  std::string home = variable("CUDA_HOME");
  return home.empty() ? std::nullopt : std::optional<std::filesystem::path>(std::move(home));
}

std::vector<std::filesystem::path> split_paths(std::string_view text) {
  std::vector<std::filesystem::path> paths;
  while (!text.empty()) {
    const std::string_view path = text.substr(0, text.find(':'));
    if (!path.empty()) {
      paths.emplace_back(path);
    }
    text.remove_prefix(std::min(path.size() + 1, text.size()));
  }
  return paths;
}

}  // namespace

Environment read_environment() {
  return {.cache_dir = find_cache_dir(),
          .runtime_dir = find_runtime_dir(),
          .template_dirs = split_paths(variable("STOF_TEMPLATE_DIRS")),
          .cuda_home = find_cuda_home(),
          .log = variable("STOF_LOG")};
}

}  // namespace stof::base
