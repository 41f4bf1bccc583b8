#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/data.hpp"
#include "reference/run.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

Execution::Execution(std::unique_ptr<engine::ExecutionData> data) : data_(std::move(data)) {}
Execution::Execution(Execution&& other) noexcept = default;
Execution& Execution::operator=(Execution&& other) noexcept = default;
Execution::~Execution() = default;

void Execution::set(const std::string& name, const TensorView& view) {
  const auto bound = data_->tensors.find(name);
  if (bound == data_->tensors.end()) {
    throw GraphError(fmt::format("set: '{}' is neither an input ({}) nor an output ({})", name,
                                 engine::list_names(data_->plan->inputs),
                                 engine::list_names(data_->plan->outputs)));
  }
  // The view that is there has passed the same check, so its shape is that of the plan.
  const TensorInfo info{
      .name = name, .shape = Shape::of(bound->second.shape), .dtype = bound->second.dtype};
  engine::check_view("set", "tensor", info, view, {});
  bound->second = view;
}

void Execution::launch(CUstream_st* /*stream*/) {
  const engine::PlanData& plan = *data_->plan;
  reference::Tensors tensors;
  for (const TensorInfo& info : plan.inputs) {
    tensors.emplace(info.name, data_->tensors.at(info.name));
  }
  for (const TensorInfo& info : plan.weights) {
    // The reference only reads; a view has no const form.
    tensors.emplace(info.name,
                    const_cast<HostTensor&>(data_->weights->tensors.at(info.name)).view());
  }
  const reference::Outputs outputs =
      reference::run(plan.graph, tensors,
                     {.precision = plan.options.precision, .dims = data_->dims, .thread_count = 0});
  for (const auto& [name, output] : outputs) {
    engine::copy(output.tensor(), data_->tensors.at(name));
  }
}

}  // namespace stof
