#include "cuda/kernel_graph.hpp"

#include "cuda/check.hpp"
#include "cuda/stream.hpp"

namespace stof::cuda {

namespace {

cudaGraphNodeParams node_of(const KernelLaunch& launch) {
  cudaGraphNodeParams node = {};
  node.type = cudaGraphNodeTypeKernel;
  node.kernel.func = launch.kernel.get();
  node.kernel.gridDim = launch.config.grid;
  node.kernel.blockDim = launch.config.block;
  node.kernel.sharedMemBytes = static_cast<unsigned>(launch.config.dynamic_shared_bytes);
  node.kernel.kernelParams = const_cast<void**>(launch.arguments.data());
  return node;
}

void set_cluster(cudaGraphNode_t node, dim3 cluster) {
  cudaLaunchAttributeValue value = {};
  value.clusterDim = {.x = cluster.x, .y = cluster.y, .z = cluster.z};
  STOF_CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
}

}  // namespace

// Node by node, since a capture would forbid other threads to synchronise the GPU meanwhile.
KernelGraph::KernelGraph(std::span<const KernelLaunch> launches) {
  cudaGraph_t graph = nullptr;
  STOF_CUDA(cudaGraphCreate(&graph, 0));
  graph_.reset(graph);
  for (const KernelLaunch& launch : launches) {
    cudaGraphEdgeData edge = {};
    if (launch.config.is_programmatic) {
      edge.type = cudaGraphDependencyTypeProgrammatic;
      edge.from_port = cudaGraphKernelNodePortProgrammatic;
    }
    cudaGraphNodeParams parameters = node_of(launch);
    cudaGraphNode_t node = nullptr;
    const bool is_first = nodes_.empty();
    STOF_CUDA(cudaGraphAddNode(&node, graph, is_first ? nullptr : &nodes_.back(),
                               is_first ? nullptr : &edge, is_first ? 0 : 1, &parameters));
    const dim3 cluster = launch.config.cluster;
    if (cluster.x * cluster.y * cluster.z != 1) {
      set_cluster(node, cluster);
    }
    nodes_.push_back(node);
  }
  cudaGraphExec_t exec = nullptr;
  STOF_CUDA(cudaGraphInstantiate(&exec, graph_.get(), 0));
  exec_.reset(exec);
  const Stream stream;
  STOF_CUDA(cudaGraphUpload(exec_.get(), stream.get()));
  stream.synchronize();
}

void KernelGraph::set_arguments(std::size_t index, const KernelLaunch& launch) const {
  cudaGraphNodeParams parameters = node_of(launch);
  STOF_CUDA(cudaGraphExecNodeSetParams(exec_.get(), nodes_.at(index), &parameters));
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
