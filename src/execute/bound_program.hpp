#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "cuda/device_array.hpp"
#include "cuda/kernel_graph.hpp"
#include "execute/argument.hpp"
#include "execute/bound_layout.hpp"
#include "execute/device_program.hpp"

namespace stof::execute {

// Device memory of a program, by the indices of kernel::Location.
struct Pointers {
  std::span<void* const> inputs;
  std::span<void* const> outputs;
  std::span<void* const> weights;
};

// A program with the addresses of its memory, as one CUDA graph. From one thread at a time; all
// throw CudaError.
class BoundProgram {
 public:
  // `workspace` has program->arena().size_bytes, is aligned to kArenaAlignment and belongs to this
  // program as long as it lives; null: it has its own. Without a graph it is there for launches()
  // alone.
  BoundProgram(std::shared_ptr<const DeviceProgram> program, const Pointers& pointers,
               void* workspace = nullptr, bool has_graph = true);

  // Another pointer for an input, output or weight, from the next launch on. Only the launches that
  // take it are changed, and nothing is captured again.
  void set(kernel::MemorySpace space, int index, void* pointer);

  // One graph launch; into a stream that is being captured, the kernels themselves. Nothing is
  // allocated.
  void launch(cudaStream_t stream) const;

  // Throws GraphError where the data of a mask was wrong, or more than there is room for, in a
  // launch that has ended; once for each.
  void check() const;
  // Waits for the stream, then checks.
  void synchronize(cudaStream_t stream) const;

  const DeviceProgram& program() const { return *program_; }
  // What a launch launches, in order, with layouts; for another graph around it. Valid until set()
  // or the end of this.
  std::span<const cuda::KernelLaunch> launches() const { return launches_; }

 private:
  // An argument that is a pointer into a tensor, or a map of it.
  struct Use {
    std::size_t launch = 0;  // of launches_
    std::size_t slot = 0;
    std::int64_t offset_bytes = 0;
    const kernel::TensorMap* map = nullptr;  // the slot is one of maps_
  };
  using Uses = std::vector<std::vector<Use>>;  // by index, in order of launch
  // Those of launches_ that build a layout.
  struct Build {
    std::unique_ptr<BoundLayout> layout;
    std::size_t first = 0;
  };

  std::byte* address(const kernel::Location& location) const;
  void make_workspace();
  void make_layouts();
  void make_slots();
  void add_slot(const kernel::LaunchArgument& argument, std::size_t launch);
  void add_pointer(const kernel::Location& location, Use use);
  void fill(const Use& use, std::byte* data);
  void make_launches();
  void set_arguments(std::size_t launch);
  void set_layout(const Build& build);

  std::shared_ptr<const DeviceProgram> program_;
  std::optional<cuda::DeviceArray<std::byte>> own_workspace_;
  std::byte* workspace_ = nullptr;
  std::array<std::vector<void*>, 3> tensors_;  // inputs, outputs and weights
  std::vector<Build> builds_;                  // as the program has its layouts
  std::vector<ArgumentSlot> slots_;            // of all launches of the program
  std::vector<CUtensorMap> maps_;              // of all these launches; their slots are not read
  std::vector<void*> arguments_;               // one a slot, pointing to it or to its map
  std::vector<cuda::KernelLaunch> launches_;
  std::array<Uses, 3> uses_;  // of inputs, outputs and weights
  std::optional<cuda::KernelGraph> graph_;
};

}  // namespace stof::execute
