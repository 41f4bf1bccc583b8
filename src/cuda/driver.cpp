#include "cuda/driver.hpp"

#include <type_traits>

#include <fmt/format.h>

#include "cuda/check.hpp"
#include "stof/error.hpp"

namespace stof::cuda {

namespace {

// The version at which the functions below have the types of <cuda.h>.
constexpr unsigned kVersion = 13000;

template <typename Function>
void load(Function*& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  STOF_CUDA(cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    throw CudaError(cudaErrorSharedObjectSymbolNotFound,
                    fmt::format("cuda: the NVIDIA driver has no {}", name));
  }
  function = reinterpret_cast<Function*>(address);
}

DriverFunctions load_driver() {
  DriverFunctions functions;
  load(functions.kernel_get_function, "cuKernelGetFunction");
  load(functions.func_load, "cuFuncLoad");
  load(functions.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  return functions;
}

}  // namespace

const DriverFunctions& driver() {
  static const DriverFunctions functions = load_driver();
  return functions;
}

void check(CUresult status, const char* call) {
  check(static_cast<cudaError_t>(status), call);
}

}  // namespace stof::cuda
