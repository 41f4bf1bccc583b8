#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/data.hpp"
#include "engine/memory.hpp"
#include "engine/segment_check.hpp"
#include "io/safetensors.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

HostTensor converted(const TensorInfo& info, const TensorView& view, const std::string& source) {
  const std::vector<std::int64_t> shape = info.shape.sizes();
  const bool converts =
      view.dtype == info.dtype || (is_floating(view.dtype) && is_floating(info.dtype));
  if (view.shape != shape || !converts) {
    throw GraphError(fmt::format("weights: '{}' of {} is {}, the graph takes {}", info.name, source,
                                 engine::describe(view.dtype, view.shape),
                                 engine::describe(info.dtype, shape)));
  }
  if (view.data == nullptr && view.element_count() > 0) {
    throw GraphError(fmt::format("weights: '{}' of {} is a null pointer", info.name, source));
  }
  HostTensor tensor(view);
  return view.dtype == info.dtype ? tensor : tensor.cast(info.dtype);
}

// Weights that are to lie one behind the other, which they are on GPUs alone.
std::vector<fusion::JoinedWeight> weights_together(const engine::GpuBackend* gpu,
                                                   const Plan& plan) {
  return gpu != nullptr && plan.data().gpu ? plan.data().gpu->weights_together()
                                           : std::vector<fusion::JoinedWeight>();
}

// The weights of the plan, for the caller's `call`, of which find(name) gives a view, or nothing
// for one that is missing.
template <typename Find>
Weights load(const char* call, const engine::GpuBackend* gpu, const Plan& plan,
             const std::string& source, std::size_t count, const Find& find) {
  std::vector<TensorInfo> missing;
  std::ranges::copy_if(plan.weights(), std::back_inserter(missing),
                       [&](const TensorInfo& info) { return !find(info.name); });
  if (!missing.empty()) {
    throw GraphError(fmt::format("weights: {} {} missing in {}, which has {} tensors",
                                 engine::list_names(missing), missing.size() == 1 ? "is" : "are",
                                 source, count));
  }
  auto data = std::make_shared<engine::WeightsData>();
  const auto tensor_of = [&](const TensorInfo& info) {
    return converted(info, *find(info.name), source);
  };
  for (const fusion::JoinedWeight& joined : weights_together(gpu, plan)) {
    std::vector<HostTensor> tensors;
    for (const std::string& part : joined.parts) {
      tensors.push_back(tensor_of(*std::ranges::find(plan.weights(), part, &TensorInfo::name)));
    }
    std::vector<Buffer> buffers = engine::make_adjacent_buffers(call, *gpu, tensors);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      data->tensors.emplace(joined.parts[i], std::move(buffers[i]));
    }
  }
  for (const TensorInfo& info : plan.weights()) {
    if (!data->tensors.contains(info.name)) {
      data->tensors.emplace(info.name, engine::make_buffer(call, gpu, tensor_of(info)));
    }
  }
  return Weights(std::move(data));
}

Weights load_named(const char* call, const engine::GpuBackend* gpu, const Plan& plan,
                   std::span<const NamedTensor> tensors) {
  std::map<std::string, const TensorView*> by_name;
  for (const NamedTensor& tensor : tensors) {
    if (!by_name.emplace(tensor.name, &tensor.view).second) {
      throw GraphError(fmt::format("weights: '{}' is given twice", tensor.name));
    }
  }
  return load(call, gpu, plan, "the given list", tensors.size(), [&](const std::string& name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  });
}

}  // namespace

namespace engine {

void check_weights(const PlanData& plan, const WeightsData& weights) {
  for (const TensorInfo& info : plan.weights) {
    const auto found = weights.tensors.find(info.name);
    const bool is_there = found != weights.tensors.end();
    if (is_there && found->second.view().location != plan.where()) {
      throw GraphError("bind: the weights were loaded by an engine of another backend");
    }
    if (!is_there || found->second.dtype() != info.dtype ||
        found->second.shape() != info.shape.sizes()) {
      throw GraphError(fmt::format("bind: the weights are not for this plan, they lack '{}' as {}",
                                   info.name, describe(info.dtype, info.shape.sizes())));
    }
  }
}

}  // namespace engine

Weights Engine::load_weights(const Plan& plan, const std::filesystem::path& file) const {
  const io::SafetensorsFile tensors = io::SafetensorsFile::open(file);
  return load("load_weights", gpu_.get(), plan, file.string(), tensors.names().size(),
              [&](const std::string& name) {
                return tensors.contains(name) ? std::optional(tensors.view(name)) : std::nullopt;
              });
}

Weights Engine::load_weights(const Plan& plan, std::span<const NamedTensor> tensors) const {
  return load_named("load_weights", gpu_.get(), plan, tensors);
}

Weights Engine::random_weights(const Plan& plan) const {
  engine::HostTensors tensors = engine::random_weights(plan.data().graph.ir());
  std::vector<NamedTensor> named;
  for (auto& [name, tensor] : tensors) {
    named.push_back({name, tensor.view()});
  }
  return load_named("random_weights", gpu_.get(), plan, named);
}

}  // namespace stof
