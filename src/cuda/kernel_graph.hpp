#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda/library.hpp"

namespace stof::cuda {

struct KernelLaunch {
  Kernel kernel;
  LaunchConfig config;
  std::span<void* const> arguments;  // point at the values, in order
};

// Kernels, one after the other, as one CUDA graph on the GPU that was current. All throw CudaError.
class KernelGraph {
 public:
  // The kernels must have been loaded (Kernel::load) and live as long. Argument values are read
  // before this returns.
  explicit KernelGraph(std::span<const KernelLaunch> launches);

  // The launch at this index again, with other argument values: for what is launched from now on.
  void set_arguments(std::size_t index, const KernelLaunch& launch) const;

  void launch(cudaStream_t stream) const;

 private:
  struct DestroyGraph {
    void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  };
  struct DestroyExec {
    void operator()(cudaGraphExec_t exec) const { cudaGraphExecDestroy(exec); }
  };

  std::vector<cudaGraphNode_t> nodes_;  // of graph_, one a launch
  std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> graph_;
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyExec> exec_;
};

// Whether what is launched into the stream becomes part of a graph that somebody captures.
bool is_capturing(cudaStream_t stream);

}  // namespace stof::cuda
