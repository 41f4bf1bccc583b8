#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/data.hpp"
#include "reference/run.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

using kernel::MemorySpace;

namespace {

// Of the tensor of that name, or -1.
int position(const std::vector<TensorInfo>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

std::vector<void*> pointers(const std::vector<TensorInfo>& infos, const Bindings& tensors) {
  std::vector<void*> pointers;
  pointers.reserve(infos.size());
  for (const TensorInfo& info : infos) {
    pointers.push_back(tensors.at(info.name).data);
  }
  return pointers;
}

// The first of weights that lie one behind the other. Throws GraphError where they do not.
void* joined_pointer(const fusion::JoinedWeight& joined, const Bindings& weights) {
  const std::byte* end = nullptr;
  for (const std::string& part : joined.parts) {
    const TensorView& view = weights.at(part);
    const auto* data = static_cast<const std::byte*>(view.data);
    if (end != nullptr && data != end) {
      throw GraphError(fmt::format(
          "bind: the weights were loaded for another graph, '{}' does not lie behind '{}'", part,
          joined.parts.front()));
    }
    end = data + view.element_count() * size_bytes(view.dtype);
  }
  return weights.at(joined.parts.front()).data;
}

void launch_reference(const engine::ExecutionData& data) {
  const engine::PlanData& plan = *data.plan;
  reference::Tensors tensors;
  for (const TensorInfo& info : plan.inputs) {
    tensors.emplace(info.name, data.tensors.at(info.name));
  }
  for (const TensorInfo& info : plan.weights) {
    tensors.emplace(info.name, data.weights->tensors.at(info.name).view());
  }
  const reference::Outputs outputs =
      reference::run(plan.graph, tensors,
                     {.precision = plan.options.precision, .dims = data.dims, .thread_count = 0});
  for (const auto& [name, output] : outputs) {
    engine::copy(output.tensor(), data.tensors.at(name));
  }
}

}  // namespace

namespace engine {

namespace {

// With the weights that it wants made; without deferred norms where they cannot be.
LoadedCode load_for(const GpuPlan& plan, const WeightsData& weights, const DimValues& dims) {
  for (;;) {
    LoadedCode loaded = plan.load(dims);
    const std::optional<std::string> fault =
        weights.folded.add(plan.backend(), weights.tensors, loaded.code->folded_products);
    if (!fault) {
      return loaded;
    }
    plan.refuse_deferral(*fault);
  }
}

}  // namespace

execute::BoundProgram bind_gpu(const PlanData& plan, const WeightsData& weights,
                               const Bindings& tensors, const BindOptions& options) {
  Bindings weight_views;
  for (const TensorInfo& info : plan.weights) {
    weight_views.emplace(info.name, weights.tensors.at(info.name).view());
  }
  const std::vector<void*> inputs = pointers(plan.inputs, tensors);
  const std::vector<void*> outputs = pointers(plan.outputs, tensors);
  std::vector<void*> weight_pointers = pointers(plan.weights, weight_views);
  const LoadedCode loaded = load_for(*plan.gpu, weights, options.dims);
  for (const fusion::JoinedWeight& joined : loaded.code->joined_weights) {
    weight_pointers.push_back(joined_pointer(joined, weight_views));
  }
  for (const fusion::FoldedProduct& folded : loaded.code->folded_products) {
    for (void* const tensor : weights.folded.tensors(folded)) {
      weight_pointers.push_back(tensor);
    }
  }
  return {loaded.program,
          {.inputs = inputs, .outputs = outputs, .weights = weight_pointers},
          options.workspace};
}

}  // namespace engine

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
  const engine::PlanData& plan = *data_->plan;
  engine::check_view("set", "tensor", info, view, {}, plan.where());
  bound->second = view;
  if (data_->gpu) {
    const int input = position(plan.inputs, name);
    data_->gpu->set(input >= 0 ? MemorySpace::Input : MemorySpace::Output,
                    input >= 0 ? input : position(plan.outputs, name), view.data);
  }
}

void Execution::launch(CUstream_st* stream) {
  if (data_->gpu) {
    data_->gpu->check();
    data_->gpu->launch(stream);
  } else {
    launch_reference(*data_);
  }
}

void Execution::synchronize(CUstream_st* stream) {
  if (data_->gpu) {
    data_->gpu->synchronize(stream);
  }
}

}  // namespace stof
