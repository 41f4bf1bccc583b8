#pragma once

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"

namespace stof::cuda {

// Makes a GPU the current one of this thread, until the end of the scope. Throws CudaError.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : device_(device) {
    STOF_CUDA(cudaGetDevice(&previous_));
    if (previous_ != device_) {
      STOF_CUDA(cudaSetDevice(device_));
    }
  }
  ~DeviceScope() {
    if (previous_ != device_) {
      cudaSetDevice(previous_);
    }
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int device_;
  int previous_ = 0;
};

}  // namespace stof::cuda
