#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/border.hpp"
#include "engine/data.hpp"
#include "engine/explain.hpp"
#include "graph/ir.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

namespace engine {

void check_dims(const PlanData& plan, const DimValues& dims) {
  const auto& known = plan.graph.ir().dims;
  for (const auto& [name, value] : dims) {
    if (!known.contains(name)) {
      std::vector<std::string_view> names;
      names.reserve(known.size());
      for (const auto& [dim, range] : known) {
        names.push_back(dim);
      }
      throw GraphError(
          fmt::format("bind: no dim is called '{}', there is {}", name,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    }
  }
  for (const auto& [name, dim] : known) {
    if (!dims.contains(name)) {
      throw GraphError(
          fmt::format("bind: dim '{}' has no value, BindOptions::dims must give one in [{}, {}]",
                      name, dim.min(), dim.max()));
    }
  }
}

const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::Float32:
      return "float32";
    case Precision::Float64:
      return "float64";
    default:
      return "model";
  }
}

}  // namespace engine

namespace {

const TensorInfo* find(const std::vector<TensorInfo>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorInfo& info) { return info.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

const TensorInfo& find(const char* kind, const std::vector<TensorInfo>& tensors,
                       const std::string& name) {
  if (const TensorInfo* info = find(tensors, name)) {
    return *info;
  }
  throw GraphError(fmt::format("plan: no {} is called '{}', there is {}", kind, name,
                               engine::list_names(tensors)));
}

}  // namespace

const std::vector<TensorInfo>& Plan::inputs() const {
  return data_->inputs;
}

const std::vector<TensorInfo>& Plan::weights() const {
  return data_->weights;
}

const std::vector<TensorInfo>& Plan::outputs() const {
  return data_->outputs;
}

const TensorInfo& Plan::input(const std::string& name) const {
  return find("input", data_->inputs, name);
}

const TensorInfo& Plan::output(const std::string& name) const {
  return find("output", data_->outputs, name);
}

Execution Plan::bind(const Weights& weights, const Bindings& tensors,
                     const BindOptions& options) const {
  if (data_->gpu) {
    data_->gpu->backend().device("bind");  // there is one
  }
  for (const auto& [name, view] : tensors) {
    if (find(data_->inputs, name) == nullptr && find(data_->outputs, name) == nullptr) {
      throw GraphError(fmt::format("bind: '{}' is neither an input ({}) nor an output ({})", name,
                                   engine::list_names(data_->inputs),
                                   engine::list_names(data_->outputs)));
    }
  }
  engine::check_dims(*data_, options.dims);
  const auto check_all = [&](const char* kind, const std::vector<TensorInfo>& infos) {
    for (const TensorInfo& info : infos) {
      const auto bound = tensors.find(info.name);
      if (bound == tensors.end()) {
        throw GraphError(fmt::format("bind: {} '{}' is not bound", kind, info.name));
      }
      engine::check_view("bind", kind, info, bound->second, options.dims, data_->where());
    }
  };
  check_all("input", data_->inputs);
  check_all("output", data_->outputs);
  engine::check_weights(*data_, *weights.data());
  engine::check_workspace(options.workspace);
  auto data = std::make_unique<engine::ExecutionData>();
  data->plan = data_;
  data->weights = weights.data();
  data->tensors = tensors;
  data->dims = options.dims;
  if (data_->gpu) {
    data->gpu.emplace(engine::bind_gpu(*data_, *weights.data(), tensors, options));
  }
  return Execution(std::move(data));
}

std::int64_t Plan::workspace_bytes(const DimValues& dims) const {
  engine::check_dims(*data_, dims);
  return data_->gpu ? data_->gpu->workspace_bytes(dims) : 0;
}

std::string Plan::explain(const DimValues& dims) const {
  if (!dims.empty()) {
    engine::check_dims(*data_, dims);
  }
  if (data_->gpu) {
    return engine::explain_text(data_->gpu->describe(dims));
  }
  return fmt::format("reference backend, {} precision\n{}",
                     engine::precision_name(data_->options.precision), data_->graph.dump());
}

}  // namespace stof
