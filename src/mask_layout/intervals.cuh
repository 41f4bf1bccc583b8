// Runs a program over intervals of its scalars, one region a thread. As sound as expr::bounds and
// at times coarser, which costs time and changes no result: floats may be anything.
#pragma once

#include <algorithm>

#include "expr/operation.hpp"
#include "expr/semantics.hpp"
#include "expr/table.hpp"
#include "mask_layout/views.hpp"
#include "mask_layout/words.cuh"

namespace stof::mask_layout {

// Integers from low to high; truth values as 0 and 1.
struct alignas(16) Range {
  std::int64_t low;
  std::int64_t high;
};

// Existing pairs: both ends are included.
struct Region {
  std::int64_t batch;
  std::int64_t head;
  Range query;
  Range key;
};

__device__ inline Range all() {
  return {expr::kIntMin, expr::kIntMax};
}

__device__ inline Range maybe() {
  return {0, 1};
}

__device__ inline bool is_point(Range a) {
  return a.low == a.high;
}

__device__ inline Range hull(Range a, Range b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

__device__ inline Range corners(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return {std::min(std::min(a, b), std::min(c, d)), std::max(std::max(a, b), std::max(c, d))};
}

__device__ inline bool add_wraps(std::int64_t a, std::int64_t b) {
  const std::int64_t sum = expr::wrap_add(a, b);
  return ((a ^ sum) & (b ^ sum)) < 0;
}

__device__ inline bool subtract_wraps(std::int64_t a, std::int64_t b) {
  return ((a ^ b) & (a ^ expr::wrap_subtract(a, b))) < 0;
}

__device__ inline bool multiply_wraps(std::int64_t a, std::int64_t b) {
  return __mul64hi(a, b) != expr::wrap_multiply(a, b) >> 63;
}

__device__ inline Range add(Range a, Range b) {
  const bool wraps = add_wraps(a.low, b.low) || add_wraps(a.high, b.high);
  return wraps && !(is_point(a) && is_point(b))
             ? all()
             : Range{expr::wrap_add(a.low, b.low), expr::wrap_add(a.high, b.high)};
}

__device__ inline Range subtract(Range a, Range b) {
  const bool wraps = subtract_wraps(a.low, b.high) || subtract_wraps(a.high, b.low);
  return wraps && !(is_point(a) && is_point(b))
             ? all()
             : Range{expr::wrap_subtract(a.low, b.high), expr::wrap_subtract(a.high, b.low)};
}

__device__ inline Range multiply(Range a, Range b) {
  const bool wraps = multiply_wraps(a.low, b.low) || multiply_wraps(a.low, b.high) ||
                     multiply_wraps(a.high, b.low) || multiply_wraps(a.high, b.high);
  return wraps && !(is_point(a) && is_point(b))
             ? all()
             : corners(expr::wrap_multiply(a.low, b.low), expr::wrap_multiply(a.low, b.high),
                       expr::wrap_multiply(a.high, b.low), expr::wrap_multiply(a.high, b.high));
}

// Divisors that do not grow past 0, where a quotient's ends are at corners.
template <typename Divide>
__device__ Range quotient(Range a, Range b, Divide divide) {
  if (is_point(a) && is_point(b)) {
    const std::int64_t value = divide(a.low, b.low);
    return {value, value};
  }
  if (b.low <= 0) {
    return all();
  }
  if (is_point(b)) {
    return {divide(a.low, b.low), divide(a.high, b.low)};
  }
  return corners(divide(a.low, b.low), divide(a.low, b.high), divide(a.high, b.low),
                 divide(a.high, b.high));
}

__device__ inline Range modulo(Range a, Range b) {
  if (b.low <= 0) {
    const std::int64_t value = expr::floor_mod(a.low, b.low);
    return is_point(a) && is_point(b) ? Range{value, value} : all();
  }
  // Within one period of one divisor, the remainder grows with a.
  if (is_point(b) && divide(a.low, b.low) == divide(a.high, b.low)) {
    return {modulo(a.low, b.low), modulo(a.high, b.low)};
  }
  if (a.low >= 0 && a.high < b.low) {
    return a;
  }
  return {0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
}

__device__ inline Range absolute(Range a) {
  if (a.low >= 0) {
    return a;
  }
  if (a.low == expr::kIntMin) {
    return is_point(a) ? a : all();
  }
  return a.high <= 0 ? Range{-a.high, -a.low} : Range{0, std::max(-a.low, a.high)};
}

// 2^n - 1, the least that is not below a natural number.
__device__ inline std::int64_t ones_over(std::int64_t a) {
  return a == 0 ? 0 : expr::kIntMax >> (__clzll(a) - 1);
}

__device__ inline Range bits(expr::Op op, Range a, Range b) {
  if (is_point(a) && is_point(b)) {
    const std::int64_t value = op == expr::Op::BitAnd  ? a.low & b.low
                               : op == expr::Op::BitOr ? a.low | b.low
                                                       : a.low ^ b.low;
    return {value, value};
  }
  if (b.low < 0) {
    return all();
  }
  const bool keeps_low_bits = op == expr::Op::BitAnd && is_point(b) && (b.low & (b.low + 1)) == 0;
  if (keeps_low_bits && b.low != expr::kIntMax) {
    return modulo(a, {b.low + 1, b.low + 1});
  }
  if (a.low < 0) {
    return all();
  }
  return {0, op == expr::Op::BitAnd ? std::min(a.high, b.high) : ones_over(a.high | b.high)};
}

__device__ inline Range shifted_right(Range a, Range count, bool is_logical) {
  if (!is_point(count) || (is_logical && a.low < 0)) {
    const std::int64_t value = expr::shift_right_logical(a.low, count.low);
    return is_point(count) && is_point(a) ? Range{value, value} : all();
  }
  return {expr::shift_right(a.low, count.low), expr::shift_right(a.high, count.low)};
}

__device__ inline Range shifted_left(Range a, Range count) {
  const Range result = {expr::shift_left(a.low, count.low), expr::shift_left(a.high, count.low)};
  const bool fits = expr::shift_right(result.low, count.low) == a.low &&
                    expr::shift_right(result.high, count.low) == a.high;
  return is_point(count) && (is_point(a) || fits) ? result : all();
}

// 1 where it is certain, 0 where it is impossible.
__device__ inline Range outcome(bool is_certain, bool is_impossible) {
  return {is_certain ? 1 : 0, is_impossible ? 0 : 1};
}

__device__ inline Range compared(expr::Op op, Range a, Range b) {
  const bool are_apart = a.high < b.low || b.high < a.low;
  const bool are_one = a.low == b.high && a.high == b.low;
  switch (op) {
    case expr::Op::Less:
      return outcome(a.high < b.low, a.low >= b.high);
    case expr::Op::LessEqual:
      return outcome(a.high <= b.low, a.low > b.high);
    case expr::Op::Greater:
      return outcome(a.low > b.high, a.high <= b.low);
    case expr::Op::GreaterEqual:
      return outcome(a.low >= b.high, a.high < b.low);
    case expr::Op::Equal:
      return outcome(are_one, are_apart);
    default:
      return outcome(are_apart, are_one);
  }
}

__device__ inline bool is_comparison(expr::Op op) {
  return op >= expr::Op::Equal && op <= expr::Op::GreaterEqual;
}

__device__ inline Range looked_up(const TableView& table, Range index) {
  if (table.is_float) {
    return all();
  }
  const std::int64_t last = table.size - 1;
  const std::int64_t low = std::min(std::max(index.low, std::int64_t{0}), last);
  const std::int64_t high = std::min(std::max(index.high, std::int64_t{0}), last);
  if (low == 0 && high == last) {
    return {table.low, table.high};
  }
  Range result = {expr::kIntMax, expr::kIntMin};
  for (std::int64_t i = low; i <= high;) {
    const std::int64_t block = i / expr::kTableBlock;
    if (i % expr::kTableBlock == 0 && i + expr::kTableBlock - 1 <= high) {
      result = hull(result, {table.block_low[block], table.block_high[block]});
      i += expr::kTableBlock;
    } else {
      result = hull(result, {table.entries[i], table.entries[i]});
      ++i;
    }
  }
  return result;
}

__device__ inline Range applied(expr::Op op, Range a, Range b) {
  using expr::Op;
  switch (op) {
    case Op::Negate:
      return subtract({0, 0}, a);
    case Op::BitNot:
      return {~a.high, ~a.low};
    case Op::Abs:
      return absolute(a);
    case Op::Mix: {
      const std::int64_t value = expr::mix(a.low);
      return is_point(a) ? Range{value, value} : all();
    }
    case Op::Add:
      return add(a, b);
    case Op::Subtract:
      return subtract(a, b);
    case Op::Multiply:
      return multiply(a, b);
    case Op::Divide:
      return quotient(a, b, [](auto x, auto y) { return divide(x, y); });
    case Op::CeilDiv:
      return quotient(a, b, [](auto x, auto y) { return expr::ceil_div(x, y); });
    case Op::Modulo:
      return modulo(a, b);
    case Op::Min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::Max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
      return bits(op, a, b);
    case Op::ShiftLeft:
      return shifted_left(a, b);
    case Op::ShiftRight:
      return shifted_right(a, b, false);
    case Op::ShiftRightLogical:
      return shifted_right(a, b, true);
    default:
      return all();  // ToFloat
  }
}

}  // namespace stof::mask_layout
