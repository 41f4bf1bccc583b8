#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/parallel.hpp"
#include "graph/ir.hpp"
#include "graph/normalise.hpp"
#include "reference/run.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

// What the tests of the reference backend share: random tensors, runs of small graphs, comparisons.
namespace stof::testing {

using Sizes = std::vector<std::int64_t>;
using Values = std::vector<double>;
using HostTensors = std::map<std::string, HostTensor>;

inline std::int64_t count_of(const Sizes& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

inline HostTensor tensor_of(DType dtype, const Sizes& shape, const Values& values) {
  HostTensor tensor(dtype, shape);
  REQUIRE(tensor.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  }
  return tensor;
}

inline HostTensor random_tensor(const Sizes& shape, unsigned seed, DType dtype = DType::Float32,
                                double low = -2, double high = 2) {
  constexpr std::int64_t kChunk = 1 << 16;
  HostTensor tensor(dtype, shape);
  const std::int64_t count = tensor.element_count();
  base::parallel_for((count + kChunk - 1) / kChunk, [&](std::int64_t chunk) {
    std::mt19937 generator(seed + 1000003 * static_cast<unsigned>(chunk));
    std::uniform_real_distribution<double> draw(low, high);
    const std::int64_t end = std::min(count, (chunk + 1) * kChunk);
    for (std::int64_t i = chunk * kChunk; i < end; ++i) {
      tensor.set(i, draw(generator));
    }
  });
  return tensor;
}

inline Values values_of(const HostTensor& tensor) {
  Values values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = tensor.at(static_cast<std::int64_t>(i));
  }
  return values;
}

inline reference::Outputs run_graph(const Graph& graph, HostTensors& tensors,
                                    const reference::Options& options) {
  reference::Tensors views;
  for (auto& [name, tensor] : tensors) {
    views[name] = tensor.view();
  }
  return reference::run(graph, views, options);
}

inline reference::Outputs run_exactly(const Graph& graph, HostTensors& tensors) {
  return run_graph(graph, tensors, {.precision = Precision::Float64});
}

// The output "y" in double.
inline Values result_of(const Graph& graph, HostTensors& tensors) {
  return run_exactly(graph, tensors).at("y").values;
}

inline Graph normalised(const Graph& graph) {
  return Graph(graph::normalise(graph.ir()));
}

inline Shape shape_of(const HostTensor& tensor) {
  return Shape::of(tensor.shape());
}

// A graph input with the dtype and shape of a tensor.
inline Tensor input_like(Graph& graph, const std::string& name, const HostTensor& tensor) {
  return graph.input(name, shape_of(tensor), tensor.dtype());
}

// The largest difference, relative to 1 + |expected|; infinity where only one is NaN.
inline double difference(const Values& actual, const Values& expected) {
  REQUIRE(actual.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))) {
      continue;
    }
    const double error = std::abs(actual[i] - expected[i]) / (1 + std::abs(expected[i]));
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  return largest;
}

inline void check_close(const Values& actual, const Values& expected, double tolerance = 1e-12) {
  CHECK(difference(actual, expected) <= tolerance);
}

}  // namespace stof::testing
