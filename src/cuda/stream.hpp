#pragma once

#include <memory>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "cuda/check.hpp"

namespace stof::cuda {

// A stream of its own, on the GPU that was current; it does not wait for the default stream.
class Stream {
 public:
  Stream() {
    cudaStream_t stream = nullptr;
    STOF_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
  }

  cudaStream_t get() const { return stream_.get(); }
  void synchronize() const { STOF_CUDA(cudaStreamSynchronize(get())); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };

  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

// A point in a stream, with its time.
class Event {
 public:
  Event() {
    cudaEvent_t event = nullptr;
    STOF_CUDA(cudaEventCreate(&event));
    event_.reset(event);
  }

  cudaEvent_t get() const { return event_.get(); }
  void record(cudaStream_t stream) const { STOF_CUDA(cudaEventRecord(get(), stream)); }
  void synchronize() const { STOF_CUDA(cudaEventSynchronize(get())); }

  // Time from an earlier event to this one; both must have happened.
  float microseconds_since(const Event& start) const {
    float milliseconds = 0;
    STOF_CUDA(cudaEventElapsedTime(&milliseconds, start.get(), get()));
    return milliseconds * 1e3F;
  }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };

  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
};

}  // namespace stof::cuda
