#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stof/graph.hpp"
#include "stof/tensor.hpp"

namespace stof::reference {

// What arithmetic leaves in a tensor. Sums, means, exponentials and what lies between the inputs
// and the result of one operator are doubles in every precision; only results are rounded.
enum class Precision : std::uint8_t {
  // The fast, exact backend: each result of an operator is rounded to float32, whatever floating
  // dtype it has.
  Float32,
  // The oracle: nothing is rounded.
  Float64,
  // What good kernels give: each result of an operator is rounded to its dtype, to nearest even. A
  // linear is one operator, so its product is not rounded before the bias is added; views round
  // nothing. A matmul of operands of unlike dtypes rounds the first to the dtype of the second.
  // Attention rounds as flash kernels do: q·k in double, times the scale in float32, score
  // modifiers in float32; p = exp(score - row maximum) rounded to the dtype of v where it meets v
  // and not where it is summed; their product divided by the sum, then rounded; LSE in float32.
  Model,
};

struct Options {
  Precision precision = Precision::Float32;
  DimValues dims = {};   // of symbols that the shapes of the inputs do not give
  int thread_count = 0;  // 0: one a core; results do not depend on it
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
