#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace stof::cuda {

// What only the driver offers, and not the runtime: it finds these in libcuda.so.1 when it runs.
struct DriverFunctions {
  decltype(&cuKernelGetFunction) kernel_get_function = nullptr;
  decltype(&cuFuncLoad) func_load = nullptr;
  decltype(&cuTensorMapEncodeTiled) tensor_map_encode_tiled = nullptr;
};

// Found at the first call. Throws CudaError without a driver, or where it is too old.
const DriverFunctions& driver();

// As STOF_CUDA for a driver call; the codes of both mean the same.
void check(CUresult status, const char* call);

}  // namespace stof::cuda
