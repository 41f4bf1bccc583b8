#include "engine/data.hpp"
#include "graph/ir.hpp"
#include "stof/error.hpp"

namespace stof::engine {

namespace {

TensorInfo info(const graph::Value& value) {
  return {.name = value.name, .shape = value.shape, .dtype = value.dtype};
}

}  // namespace

std::shared_ptr<PlanData> describe_plan(const Graph& graph, const EngineOptions& options) {
  const graph::Ir& ir = graph.ir();
  if (ir.outputs.empty()) {
    throw GraphError("build: graph '" + graph.name() + "' has no output");
  }
  auto plan = std::make_shared<PlanData>();
  plan->graph = graph;
  plan->options = options;
  for (const auto& value : ir.values) {
    if (value->role == graph::ValueRole::Input) {
      plan->inputs.push_back(info(*value));
    } else if (value->role == graph::ValueRole::Weight) {
      plan->weights.push_back(info(*value));
    }
  }
  for (const graph::Output& output : ir.outputs) {
    plan->outputs.push_back(info(*ir.values[static_cast<std::size_t>(output.value)]));
    plan->outputs.back().name = output.name;
    for (const TensorInfo& input : plan->inputs) {
      if (input.name == output.name) {
        throw GraphError("build: '" + output.name + "' is both an input and an output");
      }
    }
  }
  return plan;
}

}  // namespace stof::engine
