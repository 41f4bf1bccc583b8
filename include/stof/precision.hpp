#pragma once

#include <cstdint>

namespace stof {

// What arithmetic on the CPU leaves in a tensor. Sums, means, exponentials and what lies between
// the inputs and the result of one operator are doubles in every precision; only results are
// rounded.
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

}  // namespace stof
