#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/folded_weights.hpp"
#include "engine/gpu_plan.hpp"
#include "execute/bound_program.hpp"
#include "stof/engine.hpp"

namespace stof::engine {

struct PlanData {
  Graph graph;
  EngineOptions options;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> weights;
  std::vector<TensorInfo> outputs;
  std::unique_ptr<const GpuPlan> gpu;  // null on the reference backend

  // Where the backend takes tensors.
  Location where() const { return gpu ? Location::Device : Location::Host; }
};

// The borders of a graph. Throws GraphError as Engine::build does for them.
std::shared_ptr<PlanData> describe_plan(const Graph& graph, const EngineOptions& options);

struct WeightsData {
  std::map<std::string, Buffer> tensors;  // in the dtype and shape of the plan
  mutable FoldedWeights folded;           // what plans made of them
};

// Throws GraphError where a weight of the plan is missing, has another dtype or shape, or lies
// where the plan's backend does not read.
void check_weights(const PlanData& plan, const WeightsData& weights);

// Throws GraphError for a value of a dim that the plan does not have.
void check_dims(const PlanData& plan, const DimValues& dims);

// "model", "float32", "float64".
const char* precision_name(Precision precision);

// The tensors of the program by the plan's indices, in the memory that is bound.
execute::BoundProgram bind_gpu(const PlanData& plan, const WeightsData& weights,
                               const Bindings& tensors, const BindOptions& options);

struct ExecutionData {
  std::shared_ptr<const PlanData> plan;
  std::shared_ptr<const WeightsData> weights;
  Bindings tensors;  // by name, inputs and outputs
  DimValues dims;
  std::optional<execute::BoundProgram> gpu;  // nothing on the reference backend
};

}  // namespace stof::engine
