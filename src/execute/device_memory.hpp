#pragma once

#include <cstddef>
#include <span>

#include "cuda/device_array.hpp"

namespace stof::execute {

// Owns zeroed memory of one GPU that the host fills and reads. Throws CudaError.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t size_bytes);

  std::byte* data() const { return memory_.data(); }
  int device() const { return device_; }

  // Copies from and to its start, after everything that the GPU was given before has ended; the
  // copy itself has ended when these return.
  void write(std::span<const std::byte> bytes) const;
  void read(std::span<std::byte> bytes) const;

 private:
  int device_;
  cuda::DeviceArray<std::byte> memory_;
};

}  // namespace stof::execute
