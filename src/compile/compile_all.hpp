#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "compile/compiler.hpp"

namespace stof::compile {

// One of both.
struct CompileOutcome {
  std::optional<CompiledKernel> kernel;
  std::exception_ptr error;  // what Compiler::compile threw
};

struct CompileAllOptions {
  int thread_count = 0;  // 0: one a core, at most 8, since each takes about 12 MB more
  std::stop_token stop = {};
  // Called as each task ends, from the threads that compile but one call at a time. What it throws
  // ends the rest, and is thrown again.
  std::function<void(std::size_t index, const CompileOutcome& outcome)> on_done = {};
};

// Compiles the tasks in parallel; outcomes are in their order. After a stop is requested, those
// that have not ended have a CancelledError.
std::vector<CompileOutcome> compile_all(const Compiler& compiler,
                                        std::span<const CompileTask> tasks,
                                        const CompileAllOptions& options = {});

}  // namespace stof::compile
