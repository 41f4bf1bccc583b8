#pragma once

#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"

namespace stof::cuda {

// Owns one value in memory of the host that every GPU reads and writes at the same address. Throws
// CudaError.
template <typename T>
requires std::is_trivially_copyable_v<T>
class PinnedValue {
 public:
  explicit PinnedValue(const T& value = {}) {
    void* data = nullptr;
    STOF_CUDA(cudaHostAlloc(&data, sizeof(T), cudaHostAllocPortable | cudaHostAllocMapped));
    data_.reset(static_cast<T*>(data));
    *data_ = value;
  }

  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { cudaFreeHost(data); }
  };

  std::unique_ptr<T, Free> data_;
};

}  // namespace stof::cuda
