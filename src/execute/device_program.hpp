#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/library.hpp"
#include "execute/arena.hpp"
#include "kernel/program.hpp"

namespace stof::execute {

// A program with its kernels and constants on one GPU. Immutable: shared by all that it is bound
// to, from any thread.
class DeviceProgram {
 public:
  // One cubin for each of program.kernels, read before this returns. Throws CudaError, and
  // InternalError for a program whose indices lead nowhere.
  DeviceProgram(int device, kernel::Program program,
                std::span<const std::span<const std::byte>> cubins);

  int device() const { return device_; }
  const std::vector<kernel::LaunchRecord>& launches() const { return program_.launches; }
  const std::vector<kernel::LayoutBuild>& layouts() const { return program_.layouts; }
  const ArenaLayout& arena() const { return arena_; }
  // Where the piece of the arena for a layout starts.
  std::int64_t layout_offset(std::size_t index) const {
    return arena_.offsets[program_.arena.size() + index];
  }

  cuda::Kernel kernel(int index) const { return kernels_[static_cast<std::size_t>(index)]; }
  std::byte* constant(int index) const {
    return constants_.data() + constant_offsets_[static_cast<std::size_t>(index)];
  }

 private:
  void load_kernels(std::span<const std::span<const std::byte>> cubins);

  int device_;
  kernel::Program program_;  // its constants are on the GPU alone
  ArenaLayout arena_;
  std::vector<cuda::Library> libraries_;
  std::vector<cuda::Kernel> kernels_;
  std::vector<std::int64_t> constant_offsets_;
  cuda::DeviceArray<std::byte> constants_;
};

}  // namespace stof::execute
