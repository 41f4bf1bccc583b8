#include "jit/jit.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "jit/kernel_entry.hpp"
#include "kernel/kernel_key.hpp"
#include "stof/error.hpp"

namespace stof::jit {

using cache::Cache;
using cache::EntryKind;
using cache::ProcessLock;
using compile::CompileTask;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kMaxThreads = 16;  // a compile takes some 200 MB
constexpr std::string_view kCompilerLayer = "compiler";

std::optional<Kernel> to_kernel(const Cache::Hit& hit) {
  std::optional<compile::CompiledKernel> compiled = from_entry(*hit.entry);
  if (!compiled) {
    return std::nullopt;
  }
  return Kernel{.digest = hit.entry->digest(),
                .compiled = *std::move(compiled),
                .layer = std::string(hit.layer)};
}

int thread_count(const JitOptions& options) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.thread_count > 0 ? options.thread_count : std::clamp(cores, 1, kMaxThreads);
}

}  // namespace

struct Jit::Job {
  const CompileTask& task;
  kernel::Key key;
  int index = 0;  // of this miss among those of its call
  int count = 1;

  // The template that it was rendered from; empty where it was not.
  std::string file() const {
    const std::vector<std::string>& files = task.source.lines.files;
    return files.empty() ? std::string() : files.front();
  }
};

struct Jit::Batch {
  std::vector<Outcome> outcomes;                               // of all tasks; empty for a miss
  std::vector<Job> misses;                                     // each kernel once
  std::map<base::Digest, std::vector<std::size_t>> positions;  // of a miss in outcomes
};

Jit::Jit(Cache& cache, const compile::Compiler& compiler, JitOptions options)
    : cache_(cache), compiler_(compiler), options_(std::move(options)) {}

std::optional<Kernel> Jit::find(const base::Digest& digest, const std::string& source) {
  const std::optional<Cache::Hit> hit = cache_.find(EntryKind::Kernel, digest);
  std::optional<Kernel> kernel = hit ? to_kernel(*hit) : std::nullopt;
  if (kernel) {
    report({.kernel = digest, .source = source, .what = HitEvent{kernel->layer}});
  }
  return kernel;
}

Kernel Jit::get_or_compile(const CompileTask& task, const std::stop_token& stop) {
  const Job job = make_job(task);
  if (std::optional<Kernel> kernel = find(job)) {
    return *std::move(kernel);
  }
  return compile_once(job, stop);
}

std::vector<Outcome> Jit::get_or_compile(std::span<const CompileTask> tasks,
                                         const std::stop_token& stop) {
  Batch batch = look_up(tasks);
  // Each thread takes the next miss when it is free: compile times differ by a factor of twenty.
  std::atomic<std::size_t> next = 0;
  const auto work = [&](std::int64_t /*thread*/) {
    for (std::size_t i = next++; i < batch.misses.size(); i = next++) {
      const Job& job = batch.misses[i];
      Outcome outcome;
      try {
        outcome.kernel = compile_once(job, stop);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      for (const std::size_t position : batch.positions.at(job.key.digest())) {
        batch.outcomes[position] = outcome;
      }
    }
  };
  const int threads = thread_count(options_);
  base::parallel_for(std::min<std::int64_t>(threads, std::ssize(batch.misses)), work, threads);
  return std::move(batch.outcomes);
}

Jit::Batch Jit::look_up(std::span<const CompileTask> tasks) {
  Batch batch;
  batch.outcomes.resize(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    try {
      Job job = make_job(tasks[i]);
      batch.outcomes[i].kernel = find(job);
      if (!batch.outcomes[i].kernel) {
        std::vector<std::size_t>& positions = batch.positions[job.key.digest()];
        positions.push_back(i);
        if (positions.size() == 1) {
          batch.misses.push_back(std::move(job));
        }
      }
    } catch (...) {
      batch.outcomes[i].error = std::current_exception();
    }
  }
  for (std::size_t i = 0; i < batch.misses.size(); ++i) {
    batch.misses[i].index = static_cast<int>(i);
    batch.misses[i].count = static_cast<int>(batch.misses.size());
  }
  return batch;
}

Jit::Job Jit::make_job(const CompileTask& task) const {
  compile::CompileInputs inputs = compiler_.inputs(task);
  return {.task = task,
          .key = kernel::make_kernel_key({.source = task.source.text,
                                          .headers = std::move(inputs.headers),
                                          .options = std::move(inputs.options),
                                          .name_expressions = task.name_expressions,
                                          .architecture = task.target.text(),
                                          .compiler = std::move(inputs.compiler)})};
}

std::optional<Kernel> Jit::find(const Job& job) {
  const std::optional<Cache::Hit> hit = cache_.find(EntryKind::Kernel, job.key);
  std::optional<Kernel> kernel = hit ? to_kernel(*hit) : std::nullopt;
  if (kernel) {
    report(job, HitEvent{kernel->layer});
  }
  return kernel;
}

Kernel Jit::compile_once(const Job& job, const std::stop_token& stop) {
  if (const std::exception_ptr failure = cache_.find_failure(job.key.digest())) {
    std::rethrow_exception(failure);
  }
  if (!options_.may_compile) {
    throw CacheError(
        fmt::format("jit: kernel {} ({}) for {} is not in the cache, and may not be compiled",
                    job.key.digest().hex(), job.file(), job.task.target.text()));
  }
  while (true) {
    bool is_own = false;
    try {
      const auto flight = cache_.flights().run(job.key.digest(), stop, [&] {
        is_own = true;
        return find_or_compile(job, stop);
      });
      STOF_CHECK(flight.value.entry->key_material() == job.key.material())
          << "two kernels have the digest " << job.key.digest().hex();
      std::optional<Kernel> kernel = to_kernel(flight.value);
      STOF_CHECK(kernel.has_value()) << "what was compiled cannot be read back";
      if (kernel->layer != kCompilerLayer || !is_own) {
        kernel->layer = is_own ? kernel->layer : "memory";
        report(job, HitEvent{kernel->layer});
      }
      return *std::move(kernel);
    } catch (const CancelledError&) {
      if (is_own || stop.stop_requested()) {
        throw;
      }
      // The thread that compiled it was stopped, and this one was not.
    }
  }
}

Cache::Hit Jit::find_or_compile(const Job& job, const std::stop_token& stop) {
  Turn turn = wait_for_turn(job, stop);
  std::optional<Cache::Hit> hit = cache_.find(EntryKind::Kernel, job.key);
  if (hit && from_entry(*hit->entry)) {
    return *std::move(hit);
  }
  if (turn.has_waited && turn.lock.other_holder() == 0) {
    // Whoever had the lock did not die, but had no kernel to hand over: on a full disk, say. What
    // comes of this turn would not be handed over either, so nobody is to wait for it.
    turn.lock = ProcessLock();
  }
  return {.entry = compile(job, stop), .layer = kCompilerLayer};
}

Jit::Turn Jit::wait_for_turn(const Job& job, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kLongestNap(4);
  const auto deadline = Clock::now() + options_.max_wait;
  std::chrono::milliseconds nap(1);
  Turn turn;
  while (true) {
    turn.lock = cache_.lock(job.key.digest());
    if (turn.lock.state() != ProcessLock::State::Busy) {
      return turn;
    }
    if (!std::exchange(turn.has_waited, true)) {
      report(job, WaitEvent{turn.lock.other_holder()});
    }
    if (stop.stop_requested()) {
      throw CancelledError("jit: cancelled");
    }
    if (Clock::now() >= deadline) {
      return turn;  // whoever holds it may hang: compile beside it
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestNap);
  }
}

std::shared_ptr<const cache::Entry> Jit::compile(const Job& job, const std::stop_token& stop) {
  report(job, CompileBeginEvent{.index = job.index, .count = job.count});
  const auto start = Clock::now();
  const auto time_ms = [start] {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  try {
    const compile::CompiledKernel compiled = compiler_.compile(job.task, stop);
    auto entry = cache_.add(to_entry(job.key, compiled));
    report(job,
           CompileEndEvent{.time_ms = time_ms(), .functions = compiled.functions, .error = {}});
    return entry;
  } catch (const CompileError& error) {
    cache_.add_failure(job.key.digest(), std::current_exception());
    report(job, CompileEndEvent{.time_ms = time_ms(), .functions = {}, .error = error.what()});
    throw;
  } catch (const Error& error) {
    report(job, CompileEndEvent{.time_ms = time_ms(), .functions = {}, .error = error.what()});
    throw;
  }
}

void Jit::report(const Job& job, decltype(Event::what) what) {
  report({.kernel = job.key.digest(), .source = job.file(), .what = std::move(what)});
}

void Jit::report(const Event& event) {
  if (options_.on_event) {
    const std::lock_guard lock(event_mutex_);
    options_.on_event(event);
  }
}

}  // namespace stof::jit
