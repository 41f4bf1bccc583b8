#include "cuda/nvrtc_files.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "stof/error.hpp"
#include "temporary_folder.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::string read(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("the compiler of this machine is found and named without a byte of it mapped after") {
  const NvrtcFiles files = find_nvrtc();
  CHECK(files.library.is_absolute());
  const std::string identity = compiler_identity(files);
  CHECK(identity.starts_with("nvrtc "));
  CHECK(identity == compiler_identity(files));
  CHECK(identity.size() > 2 * 16);
  CHECK(read("/proc/self/maps").find("libnvrtc") == std::string::npos);
}

TEST_CASE("the newest builtins beside a library are its own") {
  const stof::test::TemporaryFolder folder;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc-builtins.so.13.9",
                           "libnvrtc-builtins.so.13.10", "libnvrtc-builtins.so.13.10.88",
                           "libnvrtc-builtins.so.12.90", "libnvrtc-builtins.alt.so.13.11"}) {
    write(folder.path() / name, name);
  }
  const NvrtcFiles files = nvrtc_files_beside(folder.path() / "libnvrtc.so.13");
  CHECK(files.builtins.filename() == "libnvrtc-builtins.so.13.10");
}

TEST_CASE("builtins are found beside what a link leads to") {
  const stof::test::TemporaryFolder folder;
  fs::create_directories(folder.path() / "real");
  write(folder.path() / "real/libnvrtc.so.13", "");
  write(folder.path() / "real/libnvrtc-builtins.so.13.0", "");
  fs::create_symlink(folder.path() / "real/libnvrtc.so.13", folder.path() / "libnvrtc.so.13");
  CHECK(nvrtc_files_beside(folder.path() / "libnvrtc.so.13").builtins.parent_path() ==
        fs::canonical(folder.path() / "real"));
}

TEST_CASE("a library without builtins is an error that says so") {
  const stof::test::TemporaryFolder folder;
  const fs::path library = folder.path() / "libnvrtc.so.13";
  write(library, "");
  const std::string message =
      "cuda: " + library.string() + " has no libnvrtc-builtins.so.13.* beside it";
  CHECK_THROWS_WITH_AS(nvrtc_files_beside(library), message.c_str(), stof::CudaError);
}

TEST_CASE("a file without build-id is named by its bytes, and again when they change") {
  const stof::test::TemporaryFolder folder;
  const fs::path file = folder.path() / "libx.so";
  write(file, "one");
  CHECK(library_build(file) == "xxh3-" + stof::base::hash("one").hex());
  write(folder.path() / "new", "two");
  fs::rename(folder.path() / "new", file);
  CHECK(library_build(file) == "xxh3-" + stof::base::hash("two").hex());
}

TEST_CASE("a file that is not there is an error") {
  CHECK_THROWS_WITH_AS(library_build("/no/libx.so"),
                       "cuda: cannot read /no/libx.so: No such file or directory", stof::CudaError);
}
