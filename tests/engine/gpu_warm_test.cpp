// An application that starts a second time, as a program of its own.
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "temporary_folder.hpp"

namespace {

struct Report {
  int compiled = -1;
  bool has_nvrtc = false;
  std::string digest;
};

Report run_process(const std::string& cache) {
  struct Close {
    void operator()(std::FILE* file) const { pclose(file); }
  };
  const std::string command = std::string(STOF_WARM_PROCESS) + " " + cache;
  const std::unique_ptr<std::FILE, Close> output(popen(command.c_str(), "r"));
  std::array<char, 256> line{};
  REQUIRE(std::fgets(line.data(), line.size(), output.get()) != nullptr);
  Report report;
  std::istringstream(line.data()) >> report.compiled >> report.has_nvrtc >> report.digest;
  return report;
}

}  // namespace

TEST_CASE("the second process compiles nothing, has no NVRTC and gives the same bits") {
  const stof::test::TemporaryFolder cache;
  const Report first = run_process(cache.path().string());
  CHECK(first.compiled >= 3);
  CHECK(first.has_nvrtc);
  const Report second = run_process(cache.path().string());
  CHECK(second.compiled == 0);
  CHECK_FALSE(second.has_nvrtc);
  CHECK(second.digest == first.digest);
}
