// Processes that want one kernel at the same time, each a program of its own.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary_folder.hpp"

using stof::test::TemporaryFolder;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

namespace {

// Runs tests/jit/process.cpp, and gathers what it prints.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments) {
    int text[2] = {};
    REQUIRE(pipe2(text, O_CLOEXEC) == 0);
    std::vector<char*> argv = {const_cast<char*>(STOF_JIT_PROCESS)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    id_ = fork();
    if (id_ == 0) {
      dup2(text[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(text[1]);
    output_ = text[0];
  }
  Process(Process&& other) noexcept
      : id_(std::exchange(other.id_, 0)), output_(std::exchange(other.output_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (id_ > 0) {
      kill();
      waitpid(id_, nullptr, 0);
    }
    if (output_ >= 0) {
      close(output_);
    }
  }

  void kill() const { ::kill(id_, SIGKILL); }

  // The words that it printed, when it has ended well.
  std::vector<std::string> words() {
    std::string text;
    char c = 0;
    while (read(output_, &c, 1) == 1) {
      text += c;
    }
    int status = 0;
    REQUIRE(waitpid(std::exchange(id_, 0), &status, 0) > 0);
    REQUIRE(status == 0);
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
  }

 private:
  pid_t id_ = 0;
  int output_ = -1;
};

struct Place {
  TemporaryFolder folder;
  fs::path count_file = folder / "count";

  Process start(int compile_ms) const {
    return Process({(folder / "cache").string(), folder.path().string(), "fake",
                    count_file.string(), std::to_string(compile_ms)});
  }
  std::uintmax_t compile_count() const {
    std::error_code none;
    const std::uintmax_t size = fs::file_size(count_file, none);
    return none ? 0 : size;
  }
  void wait_for_compile() const {
    const auto deadline = Clock::now() + 20s;
    while (compile_count() == 0 && Clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
    REQUIRE(compile_count() == 1);
  }
};

}  // namespace

TEST_CASE("many processes on one cold key compile it once") {
  const Place place;
  std::vector<Process> processes;
  processes.reserve(24);
  for (int i = 0; i < 24; ++i) {
    processes.push_back(place.start(300));
  }
  std::set<std::string> cubins;
  int compiled = 0;
  for (Process& process : processes) {
    const std::vector<std::string> words = process.words();
    REQUIRE(words.size() == 3);
    compiled += words[0] == "compiler" ? 1 : 0;
    CHECK((words[0] == "compiler" || words[0] == "disk"));
    cubins.insert(words[2]);
  }
  CHECK(compiled == 1);
  CHECK(place.compile_count() == 1);
  CHECK(cubins.size() == 1);
}

TEST_CASE("a process that is killed while it compiles is replaced at once, by one other") {
  const Place place;
  Process owner = place.start(60000);
  place.wait_for_compile();
  std::vector<Process> others;
  others.reserve(8);
  for (int i = 0; i < 8; ++i) {
    others.push_back(place.start(100));
  }
  std::this_thread::sleep_for(500ms);  // most of them wait by now
  CHECK(place.compile_count() == 1);
  const auto start = Clock::now();
  owner.kill();
  int compiled = 0;
  for (Process& other : others) {
    compiled += other.words().at(0) == "compiler" ? 1 : 0;
  }
  CHECK(compiled == 1);
  CHECK(place.compile_count() == 2);
  CHECK(Clock::now() - start < 10s);
}

TEST_CASE("a warm process does not open the compiler") {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {(folder / "cache").string(), folder.path().string(),
                                              "nvrtc"};
  const std::vector<std::string> cold = Process(arguments).words();
  REQUIRE(cold.size() == 3);
  CHECK(cold[0] == "compiler");
  CHECK(cold[1] == "mapped");
  const std::vector<std::string> warm = Process(arguments).words();
  REQUIRE(warm.size() == 3);
  CHECK(warm[0] == "disk");
  CHECK(warm[1] == "unmapped");
  CHECK(warm[2] == cold[2]);
}
