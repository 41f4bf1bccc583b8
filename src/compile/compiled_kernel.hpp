#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stof/error.hpp"

namespace stof::compile {

// What the assembler gave one function.
struct FunctionResources {
  std::string name;  // lowered: what Library::kernel() takes
  bool is_entry = false;
  // Of entry points alone. With setmaxnreg in the kernel, registers are those at its start.
  std::int64_t registers = 0;
  std::int64_t barriers = 0;
  std::int64_t shared_bytes = 0;  // static
  std::int64_t stack_bytes = 0;
  std::int64_t spill_store_bytes = 0;
  std::int64_t spill_load_bytes = 0;

  friend bool operator==(const FunctionResources&, const FunctionResources&) = default;
};

struct CompiledKernel {
  std::vector<std::byte> cubin;
  // Entry points in the order of the source, each before the functions that it calls.
  std::vector<FunctionResources> functions;
  std::vector<CompileMessage> messages;    // warnings, and what costs speed
  std::vector<std::string> lowered_names;  // of CompileTask::name_expressions
  double compile_ms = 0;

  // Throws InternalError where there is none of that name.
  const FunctionResources& entry(const std::string& name) const;
};

// "(C7510) Potential Performance Loss: …": serialised wgmma, setmaxnreg that is ignored.
bool is_performance_loss(const CompileMessage& message);

// A warpgroup wait or arrive that the compiler put in: right, but slower than need be.
bool is_injected_wait(const CompileMessage& message);

// What a kernel that is meant to be fast may not have, in words: spills, stack frames, performance
// losses, injected waits. Empty for a good one.
std::vector<std::string> quality_faults(const CompiledKernel& kernel);

}  // namespace stof::compile
