#include "compile/compile_all.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/parallel.hpp"

namespace stof::compile {

namespace {

constexpr int kMaxThreads = 8;

CompileOutcome compile_one(const Compiler& compiler, const CompileTask& task,
                           const std::stop_token& stop) {
  CompileOutcome outcome;
  try {
    if (stop.stop_requested()) {
      throw CancelledError("compile: cancelled");
    }
    outcome.kernel = compiler.compile(task, stop);
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

}  // namespace

std::vector<CompileOutcome> compile_all(const Compiler& compiler,
                                        std::span<const CompileTask> tasks,
                                        const CompileAllOptions& options) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads =
      options.thread_count > 0 ? options.thread_count : std::clamp(cores, 1, kMaxThreads);

  std::stop_source stop;  // the caller's, or a callback that threw
  const std::stop_callback forward(options.stop, [&stop] { stop.request_stop(); });

  std::vector<CompileOutcome> outcomes(tasks.size());
  std::atomic<std::size_t> next = 0;
  std::mutex done_mutex;
  // Each thread takes the next task when it is free: compile times differ by a factor of twenty.
  const auto work = [&](std::int64_t /*thread*/) {
    for (std::size_t index = next++; index < tasks.size(); index = next++) {
      outcomes[index] = compile_one(compiler, tasks[index], stop.get_token());
      if (options.on_done) {
        const std::scoped_lock lock(done_mutex);
        try {
          options.on_done(index, outcomes[index]);
        } catch (...) {
          stop.request_stop();
          throw;
        }
      }
    }
  };
  base::parallel_for(std::min<std::int64_t>(threads, std::ssize(tasks)), work, threads);
  return outcomes;
}

}  // namespace stof::compile
