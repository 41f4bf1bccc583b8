// The pipeline, stage by stage. The reference backend has the short one: a graph is its own plan.
#include "stof/engine.hpp"

#include <utility>

#include "engine/data.hpp"
#include "engine/gpu_backend.hpp"
#include "engine/memory.hpp"
#include "graph/normalise.hpp"

namespace stof {

Engine::Engine(EngineOptions options)
    : options_(std::move(options)), gpu_(engine::open_backend(options_)) {}

Backend Engine::backend() const {
  return gpu_ ? Backend::Gpu : Backend::Reference;
}

Plan Engine::build(const Graph& graph) const {
  std::shared_ptr<engine::PlanData> plan = engine::describe_plan(graph, options_);
  if (gpu_) {
    graph::Ir primitive = graph::normalise_but_attention(graph.ir());
    // Lowers to launches of template kernels, renders and compiles what no cache holds; for a graph
    // with symbolic dims at the largest ones, and again for others when they are bound.
    plan->gpu = std::make_unique<engine::GpuPlan>(gpu_, std::move(primitive));
  }
  return Plan(std::move(plan));
}

Buffer Engine::allocate(const TensorInfo& tensor, const DimValues& dims) const {
  return engine::make_buffer("allocate", gpu_.get(),
                             HostTensor(tensor.dtype, tensor.shape.sizes(dims)));
}

}  // namespace stof
