#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/gpu_target.hpp"
#include "compile/compiled_kernel.hpp"
#include "kernel/kernel_key.hpp"
#include "kernel/kernel_source.hpp"

namespace stof::compile {

struct CompileTask {
  kernel::KernelSource source;
  base::GpuTarget target;
  std::vector<std::string> name_expressions = {};  // kernels without C linkage: "scale<float>"
};

// All that decides the cubin beside source, target and name expressions.
struct CompileInputs {
  std::vector<std::string> options;           // one string each
  std::vector<kernel::HeaderDigest> headers;  // those that the source is given, in order of name
  std::string compiler;                       // which build of it
};

// Turns rendered CUDA into cubins. Every call may come from any thread.
class Compiler {
 public:
  Compiler() = default;
  virtual ~Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  // Cheap, and compiles nothing.
  virtual CompileInputs inputs(const CompileTask& task) const = 0;

  // Throws CompileError where the source is wrong, CancelledError soon after a stop is requested,
  // CudaError where there is no compiler or header or it fails of itself.
  virtual CompiledKernel compile(const CompileTask& task, std::stop_token stop) const = 0;
};

}  // namespace stof::compile
