#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace stof::cuda {

struct LaunchConfig {
  dim3 grid = {1, 1, 1};
  dim3 block = {1, 1, 1};
  dim3 cluster = {1, 1, 1};
  std::size_t dynamic_shared_bytes = 0;
  bool is_programmatic = false;  // may start before the kernel ahead of it has ended
};

// A kernel of a Library, which must live as long. All throw CudaError.
class Kernel {
 public:
  explicit Kernel(cudaKernel_t kernel) : kernel_(kernel) {}

  cudaKernel_t get() const { return kernel_; }
  cudaFuncAttributes attributes() const;
  // Of each parameter, in bytes.
  std::vector<std::size_t> argument_sizes() const;

  // Above 48 KB a kernel gets dynamic shared memory only as much as this has set before.
  void allow_dynamic_shared_bytes(std::size_t size_bytes) const;

  // Puts the code on the current GPU now rather than at the first launch, as stream capture needs.
  CUfunction load() const;

  // Arguments point at the values, in order, and are read before this returns.
  void launch(const LaunchConfig& config, std::span<void* const> arguments,
              cudaStream_t stream) const;

 private:
  cudaKernel_t kernel_;
};

// A cubin in the process, for every GPU that it runs on.
class Library {
 public:
  // Copies the cubin. Throws CudaError, also for bytes that are no cubin.
  explicit Library(std::span<const std::byte> cubin);

  // By lowered name. Throws CudaError that names it.
  Kernel kernel(const std::string& name) const;

 private:
  struct Unload {
    void operator()(cudaLibrary_t library) const { cudaLibraryUnload(library); }
  };

  std::unique_ptr<std::remove_pointer_t<cudaLibrary_t>, Unload> library_;
};

}  // namespace stof::cuda
