#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/kernel_graph.hpp"
#include "execute/bound_program.hpp"
#include "execute/device_memory.hpp"

namespace stof::execute {

// What the tensors of a program hold, by the indices of kernel::Location.
struct TensorContents {
  std::vector<std::span<const std::byte>> inputs;
  std::vector<std::span<const std::byte>> weights;
  std::vector<std::size_t> output_bytes;
};

// The tensors of a program on a GPU, several times over, so that programs that take turns with the
// copies find none of them in a cache. Throws CudaError.
class TensorCopies {
 public:
  TensorCopies(int device, const TensorContents& contents, int count);

  int device() const { return memory_.device(); }
  int count() const { return count_; }
  // Valid as long as this object.
  Pointers pointers(int copy) const;

  // Makes each output of the first copy NaN throughout, whatever floating dtype it has.
  void spoil_outputs() const;
  // A piece of an output of the first copy, after everything that the GPU was given has ended.
  void read_output(int output, std::size_t offset, std::span<std::byte> bytes) const;

  // As many as it takes to pass `cache_bytes` of a GPU, `most` at most and 1 at least.
  static int count_for(const TensorContents& contents, std::size_t cache_bytes, int most);

 private:
  std::byte* output(int index) const;

  int count_;
  std::vector<std::size_t> output_bytes_;
  DeviceMemory memory_;
  std::vector<void*> inputs_;  // of all copies, one after the other
  std::vector<void*> weights_;
  std::vector<void*> outputs_;
};

// A program bound to each of several copies of its tensors, as one CUDA graph of `runs` runs that
// take turns with them. All throw CudaError.
class Replay {
 public:
  Replay(const std::shared_ptr<const DeviceProgram>& program, const TensorCopies& copies, int runs);

  int runs() const { return runs_; }
  void launch(cudaStream_t stream) const { graph_->launch(stream); }
  // One run on the first copy, awaited. Throws what BoundProgram::synchronize does.
  void run_once() const;

 private:
  int runs_;
  std::optional<DeviceMemory> workspace_;  // one after the other, so that they may share it
  std::vector<std::unique_ptr<BoundProgram>> bound_;
  std::optional<cuda::KernelGraph> graph_;
};

// The time of one run in microseconds, `samples` times for each of the replays, which take turns,
// so that what disturbs one disturbs all. Each runs once before the first sample.
std::vector<std::vector<double>> time_in_turn(std::span<const Replay* const> replays, int samples);

}  // namespace stof::execute
