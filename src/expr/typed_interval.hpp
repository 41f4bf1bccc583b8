#pragma once

#include "expr/interval.hpp"

namespace stof::expr {

// apply() for operands of one type.
Interval apply_to_integers(Op op, const Interval& a, const Interval& b);
Interval apply_to_floats(Op op, const Interval& a, const Interval& b);

// What a comparison gives where its outcome is certain, impossible or neither.
inline Interval compared(bool is_certain, bool is_impossible) {
  return Interval::truths(!is_certain, !is_impossible);
}

// a < b, a <= b, … of all from a_low to a_high and b_low to b_high; of no NaN.
template <typename T>
Interval compare(Op op, T a_low, T a_high, T b_low, T b_high) {
  switch (op) {
    case Op::Less:
      return compared(a_high < b_low, a_low >= b_high);
    case Op::LessEqual:
      return compared(a_high <= b_low, a_low > b_high);
    case Op::Greater:
      return compared(a_low > b_high, a_high <= b_low);
    case Op::GreaterEqual:
      return compared(a_low >= b_high, a_high < b_low);
    default:
      break;
  }
  const bool is_certain = a_low == b_high && a_high == b_low;  // so all four are one value
  const bool is_impossible = a_high < b_low || b_high < a_low;
  return op == Op::Equal ? compared(is_certain, is_impossible)
                         : compared(is_impossible, is_certain);
}

inline bool is_comparison(Op op) {
  return op >= Op::Equal && op <= Op::GreaterEqual;
}

}  // namespace stof::expr
