#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "compile/compiler.hpp"
#include "jit/event.hpp"
#include "kernel/key.hpp"

namespace stof::jit {

struct JitOptions {
  bool may_compile = true;  // otherwise what is in no layer of the cache is a CacheError
  // How long another process may take over the same kernel before this one compiles it too.
  std::chrono::milliseconds max_wait = std::chrono::seconds(30);
  int thread_count = 0;  // of a batch; 0: one a core, at most 16
  // Called from any thread, one call at a time. What it throws ends the call that it is about.
  OnEvent on_event;
};

struct Kernel {
  base::Digest digest;  // of its key: a plan that keeps it finds the kernel without any source
  compile::CompiledKernel compiled;
  std::string layer;  // where it was found; "compiler" where it was compiled
};

// One of both.
struct Outcome {
  std::optional<Kernel> kernel;
  std::exception_ptr error;
};

// Kernels from the cache, else from the compiler: one compile for each kernel on a machine, however
// many threads and processes want it. Thread-safe.
class Jit {
 public:
  // Cache and compiler are used for as long as this lives.
  Jit(cache::Cache& cache, const compile::Compiler& compiler, JitOptions options = {});

  // A kernel that was compiled before, by the digest of its key; asks no compiler for anything.
  // `source` is for the event alone.
  std::optional<Kernel> find(const base::Digest& digest, const std::string& source = {});

  // Throws what Compiler::inputs() and compile() throw; a CompileError is remembered as long as
  // the cache lives. Throws CacheError where it may not compile.
  Kernel get_or_compile(const compile::CompileTask& task, const std::stop_token& stop = {});

  // The same for each task, with the misses in parallel; outcomes are in their order.
  std::vector<Outcome> get_or_compile(std::span<const compile::CompileTask> tasks,
                                      const std::stop_token& stop = {});

 private:
  struct Job;    // a task with its key
  struct Batch;  // tasks, and which of them are not in the cache
  struct Turn {
    cache::ProcessLock lock;
    bool has_waited = false;
  };

  Batch look_up(std::span<const compile::CompileTask> tasks);
  Job make_job(const compile::CompileTask& task) const;
  std::optional<Kernel> find(const Job& job);
  Kernel compile_once(const Job& job, const std::stop_token& stop);
  cache::Cache::Hit find_or_compile(const Job& job, const std::stop_token& stop);
  Turn wait_for_turn(const Job& job, const std::stop_token& stop);
  std::shared_ptr<const cache::Entry> compile(const Job& job, const std::stop_token& stop);
  void report(const Job& job, decltype(Event::what) what);
  void report(const Event& event);

  cache::Cache& cache_;
  const compile::Compiler& compiler_;
  JitOptions options_;
  std::mutex event_mutex_;
};

}  // namespace stof::jit
