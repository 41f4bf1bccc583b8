#include "base/log.hpp"

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/files.hpp"

namespace {

const std::filesystem::path kPath =
    std::filesystem::temp_directory_path() / ("stof_log_test." + std::to_string(getpid()));

struct Remove {
  ~Remove() { std::filesystem::remove(kPath); }
};

}  // namespace

// One test case: the sink is chosen once a process.
TEST_CASE("lines of all threads are appended whole to the file that STOF_LOG names") {
  const Remove remove;
  stof::base::write_file_atomically(kPath, "before\n");
  setenv("STOF_LOG", kPath.c_str(), 1);
  CHECK(stof::base::is_log_enabled());
  stof::base::log("jit: {} in {} ms", "gemm", 12);
  CHECK(stof::base::read_file(kPath, 1000) == "before\nstof: jit: gemm in 12 ms\n");
  {
    std::vector<std::jthread> threads(4);
    for (std::jthread& thread : threads) {
      thread = std::jthread([] {
        for (int line = 0; line < 100; ++line) {
          stof::base::log_line("0123456789");
        }
      });
    }
  }
  std::string expected = "before\nstof: jit: gemm in 12 ms\n";
  for (int line = 0; line < 400; ++line) {
    expected += "stof: 0123456789\n";
  }
  CHECK(stof::base::read_file(kPath, 100000) == expected);
}
