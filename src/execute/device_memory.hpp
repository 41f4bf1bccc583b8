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

  // Copies from and to a place in it, after everything that the GPU was given before has ended; the
  // copy itself has ended when these return.
  void write(std::span<const std::byte> bytes, std::size_t offset_bytes = 0) const;
  void read(std::span<std::byte> bytes, std::size_t offset_bytes = 0) const;

 private:
  void check(std::size_t size_bytes, std::size_t offset_bytes) const;

  int device_;
  cuda::DeviceArray<std::byte> memory_;
};

}  // namespace stof::execute
