#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "graph/ir.hpp"
#include "stof/tensor.hpp"

namespace stof::validate {

using HostTensors = std::map<std::string, HostTensor>;

// What the inputs of a graph hold: numbers that bring out what is wrong with a kernel.
enum class InputKind : std::uint8_t {
  Normal,
  Outliers,   // one number in 61 a hundred times as large
  LargeMean,  // 200 with a deviation of 1/4, where differences of squares have lost all digits
  Small,      // a deviation of 1/512, of which the variance is as small as an epsilon
  Zeros,      // but for vectors and the second operands of products
};

inline constexpr std::array kInputKinds = {InputKind::Normal, InputKind::Outliers,
                                           InputKind::LargeMean, InputKind::Small,
                                           InputKind::Zeros};

std::string_view name(InputKind kind);

// Every input of a static graph, equal for equal graphs. Second operands of products are scaled so
// that their results stay near the first ones; integers are what the operators that read them take.
HostTensors hostile_tensors(const graph::Ir& ir, InputKind kind);

}  // namespace stof::validate
