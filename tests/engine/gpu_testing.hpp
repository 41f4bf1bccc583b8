#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "reference/testing.hpp"
#include "stof/engine.hpp"

// What the tests of the GPU backend share.
namespace stof::testing {

inline double relative_norm(const Values& actual, const Values& expected) {
  double of_difference = 0;
  double of_expected = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && actual[i] == expected[i]) {
      continue;  // the log-sum-exp of a row without keys
    }
    of_difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    of_expected += expected[i] * expected[i];
  }
  return of_expected == 0 ? std::sqrt(of_difference) : std::sqrt(of_difference / of_expected);
}

inline HostTensor filled_with_nan(DType dtype, const Sizes& shape) {
  HostTensor tensor(dtype, shape);
  if (is_floating(dtype)) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.set(i, std::numeric_limits<double>::quiet_NaN());
    }
  }
  return tensor;
}

// Integers from 0 to `count` - 1.
inline HostTensor random_integers(DType dtype, const Sizes& shape, std::int64_t count) {
  HostTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>((i * 7919 + i / 13) % count));
  }
  return tensor;
}

// Every output of a plan, for inputs and weights by name; outputs are full of NaN before.
inline std::map<std::string, Values> run_plan(const Engine& engine, const Plan& plan,
                                              HostTensors& tensors, const DimValues& dims = {}) {
  std::vector<NamedTensor> weights;
  for (const TensorInfo& info : plan.weights()) {
    weights.push_back({info.name, tensors.at(info.name).view()});
  }
  std::vector<Buffer> inputs;
  std::map<std::string, Buffer> outputs;
  Bindings bindings;
  for (const TensorInfo& info : plan.inputs()) {
    inputs.push_back(engine.allocate(info, dims));
    inputs.back().upload(tensors.at(info.name).view());
    bindings.emplace(info.name, inputs.back());
  }
  for (const TensorInfo& info : plan.outputs()) {
    Buffer& buffer = outputs.emplace(info.name, engine.allocate(info, dims)).first->second;
    buffer.upload(filled_with_nan(info.dtype, info.shape.sizes(dims)).view());
    bindings.emplace(info.name, buffer);
  }
  Execution run =
      plan.bind(engine.load_weights(plan, weights), bindings, BindOptions{.dims = dims});
  run.launch();
  std::map<std::string, Values> values;
  for (const auto& [name, buffer] : outputs) {
    values.emplace(name, values_of(buffer.download()));
  }
  return values;
}

}  // namespace stof::testing
