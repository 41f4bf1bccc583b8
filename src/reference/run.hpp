#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stof/graph.hpp"
#include "stof/precision.hpp"
#include "stof/tensor.hpp"

namespace stof::reference {

struct Options {
  Precision precision = Precision::Float32;
  DimValues dims = {};   // of symbols that the shapes of the inputs do not give
  int thread_count = 0;  // 0: one a core; results do not depend on it
  // The unit roundoff u of sums, to see what roundings that go the same way each time do to softmax
  // and attention: a sum of n exponentials is larger by n u / 32 of itself, and the scores of a row
  // of attention, which are sums of n terms, stand less apart, by 1 + n u / 8 times the largest.
  double roundoff_of_sums = 0;
};

// Inputs and weights of a graph by name, on the host. Contiguous ones are read where they are.
using Tensors = std::map<std::string, TensorView, std::less<>>;

// The value of an output, row-major.
struct Output {
  DType dtype = DType::Float32;
  std::vector<std::int64_t> shape;
  std::vector<double> values;

  HostTensor tensor() const;  // rounded to the dtype
};
using Outputs = std::map<std::string, Output, std::less<>>;

// Runs a graph, composite or normalised, on the CPU. Symbolic extents take their values from the
// shapes of the inputs. Values are freed after their last use. An int64 beyond 2^53 is no input.
// Throws GraphError: an input or weight is missing, unknown, on a device, or has another dtype or
// shape than the graph says; an id lies outside its embedding table; mask data is out of range.
Outputs run(const Graph& graph, const Tensors& tensors, const Options& options = {});

}  // namespace stof::reference
