#include "cuda/find_library.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "temporary_folder.hpp"

using namespace stof::cuda;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

namespace {

void append_word(std::string& bytes, std::uint32_t word) {
  bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
}

// A cache of two entries of one name, the first for 32-bit x86.
std::string loader_cache() {
  const std::string names("liba.so.1\0/lib32/liba.so.1\0/lib64/liba.so.1\0\0", 45);
  std::string bytes = "glibc-ld.so.cache1.1";
  for (const std::uint32_t word : {2U, std::uint32_t(names.size()), 0U, 0U, 0U, 0U, 0U}) {
    append_word(bytes, word);
  }
  const std::uint32_t strings = 48 + 2 * 24;
#if defined(__x86_64__)
  const std::uint32_t flags = 0x0303;
#else
  const std::uint32_t flags = 0x0a03;
#endif
  for (const std::uint32_t word : {0x0003U, strings, strings + 10, 0U, 0U, 0U}) {
    append_word(bytes, word);
  }
  for (const std::uint32_t word : {flags, strings, strings + 27, 0U, 0U, 0U}) {
    append_word(bytes, word);
  }
  return bytes + names;
}

}  // namespace

TEST_CASE("the loader's cache gives the library of this machine") {
  CHECK(find_in_loader_cache(loader_cache(), "liba.so.1") == "/lib64/liba.so.1");
  CHECK(find_in_loader_cache(loader_cache(), "liba.so") == std::nullopt);
}

TEST_CASE("a loader's cache that is cut or changed anywhere is no more than a miss") {
  const std::string whole = loader_cache();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_NOTHROW(find_in_loader_cache(std::string(whole, 0, size), "liba.so.1"));
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = '\xff';
    CHECK_NOTHROW(find_in_loader_cache(changed, "liba.so.1"));
  }
  CHECK(find_in_loader_cache("ld.so-1.7.0", "liba.so.1") == std::nullopt);
}

TEST_CASE("a library that every process has is found where the loader has it") {
  const fs::path file = find_library("libc.so.6", library_folders("libc.so.6"));
  CHECK(file.is_absolute());
  CHECK(file.filename() == "libc.so.6");
}

TEST_CASE("folders are the loader's, then the toolkit's, then the program's") {
  const auto folders = library_folders("libstof_no_such.so.1");
  const auto toolkit = std::ranges::find(folders, "/usr/local/cuda/lib64");
  const auto program = std::ranges::find(folders, fs::read_symlink("/proc/self/exe").parent_path());
  REQUIRE(toolkit != folders.end());
  REQUIRE(program != folders.end());
  CHECK(toolkit < program);
  CHECK(toolkit > folders.begin());
}

TEST_CASE("the first folder that holds the library wins, and a folder of that name does not") {
  const stof::test::TemporaryFolder root;
  fs::create_directories(root.path() / "a/libx.so.1");
  fs::create_directories(root.path() / "b");
  fs::create_directories(root.path() / "c");
  std::ofstream(root.path() / "b/libx.so.1") << "1";
  std::ofstream(root.path() / "c/libx.so.1") << "2";
  const std::vector<fs::path> folders = {root.path() / "a", root.path() / "b", root.path() / "c"};
  CHECK(find_library("libx.so.1", folders) == root.path() / "b/libx.so.1");
}

TEST_CASE("a library that is nowhere is an error that says where it was looked for") {
  CHECK_THROWS_WITH_AS(find_library("libx.so.1", std::vector<fs::path>{"/no/a", "/no/b"}),
                       "cuda: libx.so.1 is in none of: /no/a, /no/b", stof::CudaError);
}
