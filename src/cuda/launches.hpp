#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"
#include "cuda/kernel_graph.hpp"
#include "cuda/library.hpp"

namespace stof::cuda {

// Lets a kernel that was compiled with this library take all the shared memory of a block of the
// current GPU; without, it gets 48 KB. Never less than before, as others may be about to launch it.
inline void allow_all_shared_memory(const void* kernel) {
  int device = 0;
  int most_bytes = 0;
  cudaFuncAttributes attributes = {};
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  STOF_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  STOF_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 most_bytes - static_cast<int>(attributes.sharedSizeBytes)));
}

// Kernels that were compiled with this library, in order, with the values of their arguments: to be
// launched, or to become nodes of a KernelGraph. All throw CudaError.
class Launches {
 public:
  template <typename... Parameters>
  void add(void (*kernel)(Parameters...), const LaunchConfig& config,
           const std::type_identity_t<Parameters>&... arguments) {
    cudaKernel_t handle = nullptr;
    STOF_CUDA(cudaGetKernel(&handle, reinterpret_cast<const void*>(kernel)));
    auto values = std::make_shared<std::tuple<Parameters...>>(arguments...);
    Launch launch{.kernel = Kernel(handle), .config = config, .arguments = {}, .values = values};
    std::apply([&](auto&... value) { (launch.arguments.push_back(&value), ...); }, *values);
    launches_.push_back(std::move(launch));
  }

  // Valid as long as this, or a copy, lives unchanged.
  std::vector<KernelLaunch> all() const {
    std::vector<KernelLaunch> all;
    for (const Launch& launch : launches_) {
      all.push_back(
          {.kernel = launch.kernel, .config = launch.config, .arguments = launch.arguments});
    }
    return all;
  }

  void launch(cudaStream_t stream) const {
    for (const Launch& launch : launches_) {
      launch.kernel.launch(launch.config, launch.arguments, stream);
    }
  }

 private:
  struct Launch {
    Kernel kernel;
    LaunchConfig config;
    std::vector<void*> arguments;
    std::shared_ptr<void> values;  // that the arguments point at
  };

  std::vector<Launch> launches_;
};

}  // namespace stof::cuda
