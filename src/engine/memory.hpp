#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "stof/engine.hpp"

namespace stof::engine {

// The bytes of a buffer, wherever they lie. On a GPU all throw CudaError.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual Location location() const = 0;
  virtual void* data() = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void read(std::span<std::byte> bytes) const = 0;
};

// A buffer that holds the tensor: on the GPU of the backend, or on the host where it is null.
// `call` is who asks, for the error where the backend has no GPU.
Buffer make_buffer(std::string_view call, const GpuBackend* gpu, HostTensor tensor);

// Buffers that hold the tensors one behind the other on the GPU of the backend, without gaps.
std::vector<Buffer> make_adjacent_buffers(std::string_view call, const GpuBackend& gpu,
                                          const std::vector<HostTensor>& tensors);

}  // namespace stof::engine
