#include "cuda/library.hpp"

#include <array>

#include <fmt/format.h>

#include "cuda/check.hpp"
#include "cuda/driver.hpp"

namespace stof::cuda {

cudaFuncAttributes Kernel::attributes() const {
  cudaFuncAttributes attributes = {};
  STOF_CUDA(cudaFuncGetAttributes(&attributes, static_cast<const void*>(kernel_)));
  return attributes;
}

std::vector<std::size_t> Kernel::argument_sizes() const {
  std::vector<std::size_t> sizes;
  while (true) {
    std::size_t offset = 0;
    std::size_t size = 0;
    const cudaError_t status =
        cudaFuncGetParamInfo(static_cast<const void*>(kernel_), sizes.size(), &offset, &size);
    if (status ==
        cudaErrorInvalidValue) {  // there is none at this index: there is no other way to know
      cudaGetLastError();         // not the error of whoever asks next
      return sizes;
    }
    check(status, "cudaFuncGetParamInfo");
    sizes.push_back(size);
  }
}

void Kernel::allow_dynamic_shared_bytes(std::size_t size_bytes) const {
  STOF_CUDA(cudaFuncSetAttribute(static_cast<const void*>(kernel_),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(size_bytes)));
}

CUfunction Kernel::load() const {
  STOF_CUDA(cudaFree(nullptr));  // makes the GPU's context, which the driver calls rely on
  CUfunction function = nullptr;
  check(driver().kernel_get_function(&function, reinterpret_cast<CUkernel>(kernel_)),
        "cuKernelGetFunction");
  check(driver().func_load(function), "cuFuncLoad");
  return function;
}

void Kernel::launch(const LaunchConfig& config, std::span<void* const> arguments,
                    cudaStream_t stream) const {
  std::array<cudaLaunchAttribute, 2> attributes = {};
  unsigned count = 0;
  const dim3 cluster = config.cluster;
  if (cluster.x * cluster.y * cluster.z != 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim = {.x = cluster.x, .y = cluster.y, .z = cluster.z};
    ++count;
  }
  if (config.is_programmatic) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t launch = {};
  launch.gridDim = config.grid;
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = config.dynamic_shared_bytes;
  launch.stream = stream;
  launch.attrs = attributes.data();
  launch.numAttrs = count;
  STOF_CUDA(cudaLaunchKernelExC(&launch, static_cast<const void*>(kernel_),
                                const_cast<void**>(arguments.data())));
}

Library::Library(std::span<const std::byte> cubin) {
  cudaLibrary_t library = nullptr;
  STOF_CUDA(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  library_.reset(library);
}

Kernel Library::kernel(const std::string& name) const {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library_.get(), name.c_str()),
        fmt::format("cudaLibraryGetKernel for '{}'", name).c_str());
  return Kernel(kernel);
}

}  // namespace stof::cuda
