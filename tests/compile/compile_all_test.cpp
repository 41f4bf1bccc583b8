#include "compile/compile_all.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include "base/files.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "stof/error.hpp"

using namespace stof::compile;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

namespace {

// Names each kernel by its source; "throw" throws, "wait" lasts until it is stopped.
class FakeCompiler : public Compiler {
 public:
  CompileInputs inputs(const CompileTask& /*task*/) const override { return {}; }

  CompiledKernel compile(const CompileTask& task, std::stop_token stop) const override {
    const int now = ++running_;
    for (int most = most_; now > most && !most_.compare_exchange_weak(most, now);) {
    }
    ++count_;
    std::this_thread::sleep_for(1ms);
    while (task.source.text == "wait" && !stop.stop_requested()) {
      std::this_thread::sleep_for(1ms);
    }
    --running_;
    if (task.source.text == "throw") {
      throw stof::CompileError("kernel", "log", task.source.text, {});
    }
    if (stop.stop_requested()) {
      throw stof::CancelledError("compile: cancelled");
    }
    CompiledKernel kernel;
    kernel.lowered_names = {task.source.text};
    return kernel;
  }

  int most_at_once() const { return most_; }
  int count() const { return count_; }

 private:
  mutable std::atomic<int> running_ = 0;
  mutable std::atomic<int> most_ = 0;
  mutable std::atomic<int> count_ = 0;
};

CompileTask task_of(const std::string& text) {
  return {.source = {.text = text, .lines = {}}, .target = {.capability = 80}};
}

template <typename ErrorType>
bool holds(const CompileOutcome& outcome) {
  try {
    if (outcome.error != nullptr) {
      std::rethrow_exception(outcome.error);
    }
  } catch (const ErrorType&) {
    return !outcome.kernel.has_value();
  }
  return false;
}

}  // namespace

TEST_CASE("outcomes are in the order of the tasks, failures among them") {
  const FakeCompiler compiler;
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 40; ++i) {
    tasks.push_back(task_of(i % 7 == 3 ? "throw" : std::to_string(i)));
  }
  const auto outcomes = compile_all(compiler, tasks, {.thread_count = 4});
  REQUIRE(outcomes.size() == tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    CAPTURE(i);
    if (i % 7 == 3) {
      CHECK(holds<stof::CompileError>(outcomes[i]));
    } else {
      REQUIRE(outcomes[i].kernel.has_value());
      CHECK(outcomes[i].kernel->lowered_names.front() == std::to_string(i));
    }
  }
  CHECK(compiler.most_at_once() <= 4);
  CHECK(compile_all(compiler, {}).empty());
}

TEST_CASE("by default no more than eight compile at once") {
  const FakeCompiler compiler;
  const std::vector<CompileTask> tasks(100, task_of("a"));
  compile_all(compiler, tasks);
  CHECK(compiler.most_at_once() <= 8);
  CHECK(compiler.count() == 100);
}

TEST_CASE("each end is told once, one at a time") {
  const FakeCompiler compiler;
  const std::vector<CompileTask> tasks(50, task_of("a"));
  std::vector<int> told(tasks.size());
  bool is_inside = false;
  bool has_overlapped = false;
  compile_all(compiler, tasks,
              {.thread_count = 4, .on_done = [&](std::size_t index, const CompileOutcome& outcome) {
                 has_overlapped = has_overlapped || is_inside;
                 is_inside = true;
                 told[index] += outcome.kernel.has_value() ? 1 : 100;
                 is_inside = false;
               }});
  CHECK(told == std::vector<int>(tasks.size(), 1));
  CHECK_FALSE(has_overlapped);
}

TEST_CASE("what the callback throws ends the rest and is thrown again") {
  const FakeCompiler compiler;
  std::vector<CompileTask> tasks(200, task_of("a"));
  tasks[1] = task_of("wait");
  const auto fail = [](std::size_t index, const CompileOutcome& /*outcome*/) {
    if (index == 0) {
      throw std::runtime_error("enough");
    }
  };
  CHECK_THROWS_WITH_AS(compile_all(compiler, tasks, {.thread_count = 2, .on_done = fail}), "enough",
                       std::runtime_error);
  CHECK(compiler.count() < 10);
}

TEST_CASE("a stop leaves what has ended and cancels the rest") {
  const FakeCompiler compiler;
  std::vector<CompileTask> tasks(20, task_of("wait"));
  tasks[0] = task_of("a");
  std::stop_source stop;
  const auto outcomes = compile_all(
      compiler, tasks,
      {.thread_count = 2,
       .stop = stop.get_token(),
       .on_done = [&stop](std::size_t, const CompileOutcome&) { stop.request_stop(); }});
  CHECK(outcomes[0].kernel.has_value());
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    CHECK(holds<stof::CancelledError>(outcomes[i]));
  }
  CHECK(compiler.count() <= 4);
}

TEST_CASE("NVRTC compiles in parallel what it compiles alone") {
  const NvrtcCompiler compiler;
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 6; ++i) {
    tasks.push_back(
        task_of("extern \"C\" __global__ void k(int* to) { *to = " + std::to_string(i) + "; }\n"));
  }
  tasks.push_back(task_of("no C++"));
  const auto outcomes = compile_all(compiler, tasks, {.thread_count = 3});
  for (std::size_t i = 0; i < 6; ++i) {
    REQUIRE(outcomes[i].kernel.has_value());
    CHECK(outcomes[i].kernel->cubin == compiler.compile(tasks[i], {}).cubin);
  }
  CHECK(holds<stof::CompileError>(outcomes[6]));
}

// Each compile takes more than a second. A stop comes through in a few tenths of one, if the
// machine is idle.
TEST_CASE("a stop reaches NVRTC in the middle of a compile") {
  const NvrtcCompiler compiler;
  const std::vector<CompileTask> tasks(
      4, task_of(stof::base::read_file(STOF_SOURCE_DIR "/tests/compile/kernels/slow.cu", 4096)));
  std::stop_source stop;
  std::chrono::steady_clock::time_point stop_time;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(300ms);
    stop_time = std::chrono::steady_clock::now();
    stop.request_stop();
  });
  const auto outcomes = compile_all(compiler, tasks, {.thread_count = 2, .stop = stop.get_token()});
  const auto end = std::chrono::steady_clock::now();
  stopper.join();
  for (const CompileOutcome& outcome : outcomes) {
    CHECK(holds<stof::CancelledError>(outcome));
  }
  const double latency_s = std::chrono::duration<double>(end - stop_time).count();
  MESSAGE("cancelled after " << latency_s << " s");
  CHECK(latency_s < 5.0);
}
