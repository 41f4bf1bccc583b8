#include <map>

#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/data.hpp"
#include "engine/memory.hpp"
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

GraphError missing(const TensorInfo& info, const std::string& source, std::size_t count) {
  return GraphError(fmt::format("weights: '{}' is missing in {}, which has {} tensors", info.name,
                                source, count));
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
  auto data = std::make_shared<engine::WeightsData>();
  for (const TensorInfo& info : plan.weights()) {
    if (!tensors.contains(info.name)) {
      throw missing(info, file.string(), tensors.names().size());
    }
    data->tensors.emplace(
        info.name, engine::make_buffer("load_weights", gpu_.get(),
                                       converted(info, tensors.view(info.name), file.string())));
  }
  return Weights(std::move(data));
}

Weights Engine::load_weights(const Plan& plan, std::span<const NamedTensor> tensors) const {
  std::map<std::string, const TensorView*> by_name;
  for (const NamedTensor& tensor : tensors) {
    if (!by_name.emplace(tensor.name, &tensor.view).second) {
      throw GraphError(fmt::format("weights: '{}' is given twice", tensor.name));
    }
  }
  auto data = std::make_shared<engine::WeightsData>();
  for (const TensorInfo& info : plan.weights()) {
    const auto found = by_name.find(info.name);
    if (found == by_name.end()) {
      throw missing(info, "the given list", tensors.size());
    }
    data->tensors.emplace(info.name,
                          engine::make_buffer("load_weights", gpu_.get(),
                                              converted(info, *found->second, "the given list")));
  }
  return Weights(std::move(data));
}

}  // namespace stof
