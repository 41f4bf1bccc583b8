#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stof::base {

// What the library reads from the environment, and nowhere but here. An empty variable is an unset
// one.
struct Environment {
  // STOF_CACHE_DIR, else $XDG_CACHE_HOME/stof, else ~/.cache/stof; none of them: no cache on disk.
  std::optional<std::filesystem::path> cache_dir;
  // XDG_RUNTIME_DIR: a folder of this user on this machine, for locks.
  std::optional<std::filesystem::path> runtime_dir;
  // STOF_TEMPLATE_DIRS, split at colons.
  std::vector<std::filesystem::path> template_dirs;
  // CUDA_HOME: the root of a CUDA Toolkit.
  std::optional<std::filesystem::path> cuda_home;
  // STOF_LOG: "stderr", or a file that lines are appended to. Empty: no log.
  std::string log;
};

// The environment as it is now.
Environment read_environment();

}  // namespace stof::base
