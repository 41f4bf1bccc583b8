#include "base/environment.hpp"

#include <cstdlib>
#include <utility>

#include <doctest/doctest.h>

using stof::base::Environment;
using stof::base::read_environment;

namespace {

// Reads the environment with these variables set and the others that matter unset.
Environment environment_with(std::initializer_list<std::pair<const char*, const char*>> variables) {
  for (const char* name : {"STOF_CACHE_DIR", "STOF_TEMPLATE_DIRS", "STOF_LOG", "XDG_CACHE_HOME",
                           "XDG_RUNTIME_DIR", "HOME", "CUDA_HOME"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) {
    setenv(name, value, 1);
  }
  return read_environment();
}

using Paths = std::vector<std::filesystem::path>;

}  // namespace

TEST_CASE("nothing set is no cache, no templates, no log") {
  const Environment environment = environment_with({});
  CHECK(environment.cache_dir == std::nullopt);
  CHECK(environment.template_dirs.empty());
  CHECK(environment.cuda_home == std::nullopt);
  CHECK(environment.log.empty());
}

TEST_CASE("the cache is where the first of three variables says") {
  CHECK(environment_with({{"HOME", "/home/a"}}).cache_dir == "/home/a/.cache/stof");
  CHECK(environment_with({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/xdg"}}).cache_dir ==
        "/xdg/stof");
  CHECK(environment_with({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/xdg"}, {"STOF_CACHE_DIR", "c"}})
            .cache_dir == "c");
}

TEST_CASE("an empty variable, and a relative base, count as unset") {
  CHECK(environment_with({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", ""}, {"STOF_CACHE_DIR", ""}})
            .cache_dir == "/home/a/.cache/stof");
  CHECK(environment_with({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "xdg"}}).cache_dir ==
        "/home/a/.cache/stof");
  CHECK(environment_with({{"HOME", "home"}}).cache_dir == std::nullopt);
}

TEST_CASE("the folder for locks is an absolute path or none") {
  CHECK(environment_with({{"XDG_RUNTIME_DIR", "/run/user/7"}}).runtime_dir == "/run/user/7");
  CHECK(environment_with({{"XDG_RUNTIME_DIR", "run"}}).runtime_dir == std::nullopt);
  CHECK(environment_with({}).runtime_dir == std::nullopt);
}

TEST_CASE("template folders are split at colons") {
  CHECK(environment_with({{"STOF_TEMPLATE_DIRS", "/a"}}).template_dirs == Paths{"/a"});
  CHECK(environment_with({{"STOF_TEMPLATE_DIRS", ":/a::b c:"}}).template_dirs ==
        Paths{"/a", "b c"});
}

TEST_CASE("the CUDA Toolkit is where it is said") {
  CHECK(environment_with({{"CUDA_HOME", "/opt/cuda"}}).cuda_home == "/opt/cuda");
  CHECK(environment_with({{"CUDA_HOME", ""}}).cuda_home == std::nullopt);
}

TEST_CASE("the log goes where it is said") {
  CHECK(environment_with({{"STOF_LOG", "stderr"}}).log == "stderr");
}
