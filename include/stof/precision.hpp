#pragma once

#include <cstdint>

namespace stof {

// What arithmetic leaves in a tensor on the CPU. Sums, means, exponentials and what lies between the
// inputs and the result of one operator are doubles in every precision; only results are rounded.
enum class Precision : std::uint8_t {
  // The fast, exact backend: each result of an operator is rounded to float32, whatever floating
  // dtype it has.
  Float32,
  // The oracle: nothing is rounded.
  Float64,
  // What good kernels give: each result of an operator is rounded to its dtype, to nearest even.
  Model,
};

}  // namespace stof
