#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stof/engine.hpp"

namespace stof::engine {

struct PlanData {
  Graph graph;
  EngineOptions options;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> weights;
  std::vector<TensorInfo> outputs;
};

struct WeightsData {
  std::map<std::string, HostTensor> tensors;  // in the dtype and shape of the plan
};

// Throws GraphError where a weight of the plan is missing or has another dtype or shape.
void check_weights(const PlanData& plan, const WeightsData& weights);

// Throws GraphError for a value of a dim that the plan does not have.
void check_dims(const PlanData& plan, const DimValues& dims);

struct ExecutionData {
  std::shared_ptr<const PlanData> plan;
  std::shared_ptr<const WeightsData> weights;
  Bindings tensors;  // by name, inputs and outputs
  DimValues dims;
};

}  // namespace stof::engine
