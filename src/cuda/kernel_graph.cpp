#include "cuda/kernel_graph.hpp"

#include "base/check.hpp"
#include "cuda/check.hpp"
#include "cuda/stream.hpp"

namespace stof::cuda {

namespace {

// A capture that ends with its scope, whatever happens in it.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    // Relaxed: what other threads call meanwhile is no business of this graph.
    STOF_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  }
  ~Capture() {
    cudaGraph_t graph = nullptr;
    if (is_open_ && cudaStreamEndCapture(stream_, &graph) == cudaSuccess) {
      cudaGraphDestroy(graph);
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The node of what was launched last.
  cudaGraphNode_t last_node() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* nodes = nullptr;
    const cudaGraphEdgeData* edges =
        nullptr;  // asked for, since programmatic ones cannot be left out
    std::size_t count = 0;
    STOF_CUDA(cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &nodes, &edges, &count));
    STOF_CHECK(status == cudaStreamCaptureStatusActive && count == 1)
        << "capture: a launch left " << count << " nodes to wait for";
    return nodes[0];
  }

  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    is_open_ = false;
    STOF_CUDA(cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

 private:
  cudaStream_t stream_;
  bool is_open_ = true;
};

}  // namespace

KernelGraph::KernelGraph(std::span<const KernelLaunch> launches) {
  const Stream stream;
  Capture capture(stream.get());
  for (const KernelLaunch& launch : launches) {
    launch.kernel.launch(launch.config, launch.arguments, stream.get());
    nodes_.push_back(capture.last_node());
  }
  graph_.reset(capture.end());
  cudaGraphExec_t exec = nullptr;
  STOF_CUDA(cudaGraphInstantiate(&exec, graph_.get(), 0));
  exec_.reset(exec);
  STOF_CUDA(cudaGraphUpload(exec_.get(), stream.get()));
  stream.synchronize();
}

void KernelGraph::set_arguments(std::size_t index, const KernelLaunch& launch) const {
  cudaKernelNodeParams parameters = {};
  parameters.func = launch.kernel.get();
  parameters.gridDim = launch.config.grid;
  parameters.blockDim = launch.config.block;
  parameters.sharedMemBytes = static_cast<unsigned>(launch.config.dynamic_shared_bytes);
  parameters.kernelParams = const_cast<void**>(launch.arguments.data());
  STOF_CUDA(cudaGraphExecKernelNodeSetParams(exec_.get(), nodes_.at(index), &parameters));
}

void KernelGraph::launch(cudaStream_t stream) const {
  STOF_CUDA(cudaGraphLaunch(exec_.get(), stream));
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  STOF_CUDA(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace stof::cuda
