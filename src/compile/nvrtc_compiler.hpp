#pragma once

#include <memory>
#include <stop_token>

#include "compile/compiler.hpp"
#include "cuda/nvrtc_files.hpp"

namespace stof::compile {

// Compiles by NVRTC, in this process and with no GPU. NVRTC is found at the first call and opened
// at the first compile. Kernels may include cuda_fp16.h and cuda_bf16.h.
class NvrtcCompiler : public Compiler {
 public:
  NvrtcCompiler();  // NVRTC of this machine
  explicit NvrtcCompiler(const cuda::NvrtcFiles& files);
  ~NvrtcCompiler() override;

  CompileInputs inputs(const CompileTask& task) const override;
  CompiledKernel compile(const CompileTask& task, std::stop_token stop) const override;

 private:
  class Toolchain;

  std::unique_ptr<Toolchain> toolchain_;
};

}  // namespace stof::compile
