// Integers wrap, so a result whose ends wrap may be anything.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>

#include "base/check.hpp"
#include "expr/semantics.hpp"
#include "expr/typed_interval.hpp"

namespace stof::expr {

namespace {

struct Range {
  std::int64_t low;
  std::int64_t high;
};

constexpr Range kAll{kIntMin, kIntMax};
constexpr Range kZero{0, 0};

Range range_of(std::initializer_list<std::int64_t> values) {
  return {std::min(values), std::max(values)};
}

Range hull(Range a, Range b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

bool is_point(Range a) {
  return a.low == a.high;
}

Range add(Range a, Range b) {
  Range sum{};
  const bool wraps = __builtin_add_overflow(a.low, b.low, &sum.low) ||
                     __builtin_add_overflow(a.high, b.high, &sum.high);
  return wraps && !(is_point(a) && is_point(b)) ? kAll
         : wraps                                ? range_of({wrap_add(a.low, b.low)})
                                                : sum;
}

Range subtract(Range a, Range b) {
  Range difference{};
  const bool wraps = __builtin_sub_overflow(a.low, b.high, &difference.low) ||
                     __builtin_sub_overflow(a.high, b.low, &difference.high);
  return wraps && !(is_point(a) && is_point(b)) ? kAll
         : wraps                                ? range_of({wrap_subtract(a.low, b.low)})
                                                : difference;
}

Range multiply(Range a, Range b) {
  if (is_point(a) && is_point(b)) {
    return range_of({wrap_multiply(a.low, b.low)});
  }
  std::int64_t products[4];
  const bool wraps = __builtin_mul_overflow(a.low, b.low, &products[0]) ||
                     __builtin_mul_overflow(a.low, b.high, &products[1]) ||
                     __builtin_mul_overflow(a.high, b.low, &products[2]) ||
                     __builtin_mul_overflow(a.high, b.high, &products[3]);
  return wraps ? kAll : range_of({products[0], products[1], products[2], products[3]});
}

// The operation on divisors below 0, on 0 and on those above, as far as b holds them.
template <typename Divide>
Range for_each_sign(Range b, Divide divide) {
  std::optional<Range> result;
  const auto add_part = [&](Range part) { result = result ? hull(*result, part) : part; };
  if (b.low < 0) {
    add_part(divide(Range{b.low, std::min<std::int64_t>(b.high, -1)}));
  }
  if (b.low <= 0 && b.high >= 0) {
    add_part(kZero);
  }
  if (b.high > 0) {
    add_part(divide(Range{std::max<std::int64_t>(b.low, 1), b.high}));
  }
  return *result;
}

// A quotient is monotone in a, and in b where b does not change its sign: its ends are at corners.
template <auto kDivide>
Range quotient(Range a, Range b) {
  return for_each_sign(b, [&](Range part) {
    const bool may_wrap = a.low == kIntMin && part.high == -1;
    if (may_wrap && !(is_point(a) && is_point(part))) {
      return kAll;
    }
    return range_of({kDivide(a.low, part.low), kDivide(a.low, part.high), kDivide(a.high, part.low),
                     kDivide(a.high, part.high)});
  });
}

Range modulo(Range a, Range b) {
  return for_each_sign(b, [&](Range part) -> Range {
    // Within one period of one divisor, the remainder grows with a.
    if (is_point(part) && floor_div(a.low, part.low) == floor_div(a.high, part.low)) {
      return {floor_mod(a.low, part.low), floor_mod(a.high, part.low)};
    }
    if (part.low > 0) {
      if (a.low >= 0 && a.high < part.low) {
        return a;
      }
      return {0, a.low >= 0 ? std::min(a.high, part.high - 1) : part.high - 1};
    }
    return {a.high <= 0 ? std::max(a.low, part.low + 1) : part.low + 1, 0};
  });
}

// The counts that a shift may take, modulo 64.
Range shift_counts(Range b) {
  const Range counts{b.low & 63, b.high & 63};
  const bool is_short = bits_of(b.high) - bits_of(b.low) < 64;
  return is_short && counts.low <= counts.high ? counts : Range{0, 63};
}

Range shifted_left(Range a, Range counts) {
  if (is_point(a) && is_point(counts)) {
    return range_of({shift_left(a.low, counts.low)});
  }
  for (const std::int64_t end : {a.low, a.high}) {
    if (shift_right(shift_left(end, counts.high), counts.high) != end) {
      return kAll;
    }
  }
  return range_of({shift_left(a.low, counts.low), shift_left(a.low, counts.high),
                   shift_left(a.high, counts.low), shift_left(a.high, counts.high)});
}

Range shifted_right(Range a, Range counts) {
  return range_of({shift_right(a.low, counts.low), shift_right(a.low, counts.high),
                   shift_right(a.high, counts.low), shift_right(a.high, counts.high)});
}

Range shifted_right_logical(Range a, Range counts) {
  if (a.low >= 0) {
    return shifted_right(a, counts);
  }
  if (counts.low == 0) {
    return is_point(counts) ? a : kAll;
  }
  if (a.high < 0) {
    return {shift_right_logical(a.low, counts.high), shift_right_logical(a.high, counts.low)};
  }
  return {0, shift_right_logical(-1, counts.low)};
}

// 2^n - 1, the least that is not below the magnitudes of the bits of a and b.
std::int64_t ones_over(Range a, Range b) {
  std::uint64_t bits = 0;
  for (const std::int64_t end : {a.low, a.high, b.low, b.high}) {
    bits |= bits_of(end < 0 ? ~end : end);
  }
  return integer_of((std::uint64_t{1} << std::bit_width(bits)) - 1);
}

bool is_ones(std::int64_t value) {
  return value >= 0 && (bits_of(value) & (bits_of(value) + 1)) == 0;
}

// a & mask keeps the low bits, which is a modulo, or clears them, which is monotone.
std::optional<Range> masked(Range a, Range mask) {
  if (!is_point(mask)) {
    return std::nullopt;
  }
  if (is_point(a)) {
    return range_of({a.low & mask.low});
  }
  if (is_ones(mask.low) && mask.low != kIntMax) {
    return modulo(a, range_of({mask.low + 1}));
  }
  if (is_ones(~mask.low)) {
    return Range{a.low & mask.low, a.high & mask.low};
  }
  return std::nullopt;
}

Range bit_and(Range a, Range b) {
  if (const auto result = masked(a, b)) {
    return *result;
  }
  if (const auto result = masked(b, a)) {
    return *result;
  }
  const bool is_a_natural = a.low >= 0;
  const bool is_b_natural = b.low >= 0;
  const std::int64_t low = is_a_natural || is_b_natural ? 0 : -ones_over(a, b) - 1;
  if (is_a_natural == is_b_natural) {
    const bool are_same_sign = is_a_natural || (a.high < 0 && b.high < 0);
    return {low, are_same_sign ? std::min(a.high, b.high) : std::max(a.high, b.high)};
  }
  return {low, is_a_natural ? a.high : b.high};
}

Range bit_not(Range a) {
  return {~a.high, ~a.low};
}

Range bit_xor(Range a, Range b) {
  if (is_point(a) && is_point(b)) {
    return range_of({a.low ^ b.low});
  }
  const std::int64_t ones = ones_over(a, b);
  const bool is_sign_known = (a.low < 0) == (a.high < 0) && (b.low < 0) == (b.high < 0);
  if (!is_sign_known) {
    return {-ones - 1, ones};
  }
  return (a.low < 0) == (b.low < 0) ? Range{0, ones} : Range{-ones - 1, -1};
}

Range absolute(Range a) {
  if (a.low >= 0) {
    return a;
  }
  if (a.low == kIntMin) {
    return is_point(a) ? a : kAll;
  }
  return a.high <= 0 ? Range{-a.high, -a.low} : Range{0, std::max(-a.low, a.high)};
}

Range mixed(Range a) {
  return is_point(a) ? range_of({mix(a.low)}) : kAll;
}

Range apply(Op op, Range a, Range b) {
  switch (op) {
    case Op::Negate:
      return subtract(kZero, a);
    case Op::BitNot:
      return bit_not(a);
    case Op::Abs:
      return absolute(a);
    case Op::Mix:
      return mixed(a);
    case Op::Add:
      return add(a, b);
    case Op::Subtract:
      return subtract(a, b);
    case Op::Multiply:
      return multiply(a, b);
    case Op::Divide:
      return quotient<floor_div>(a, b);
    case Op::CeilDiv:
      return quotient<ceil_div>(a, b);
    case Op::Modulo:
      return modulo(a, b);
    case Op::Min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::Max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::BitAnd:
      return bit_and(a, b);
    case Op::BitOr:
      return bit_not(bit_and(bit_not(a), bit_not(b)));
    case Op::BitXor:
      return bit_xor(a, b);
    case Op::ShiftLeft:
      return shifted_left(a, shift_counts(b));
    case Op::ShiftRight:
      return shifted_right(a, shift_counts(b));
    case Op::ShiftRightLogical:
      return shifted_right_logical(a, shift_counts(b));
    default:
      break;
  }
  STOF_CHECK(false) << "operation " << info(op).text << " on integers";
  return kAll;
}

}  // namespace

Interval apply_to_integers(Op op, const Interval& a, const Interval& b) {
  if (is_comparison(op)) {
    return compare(op, a.low, a.high, b.low, b.high);
  }
  if (op == Op::ToFloat) {
    return Interval::floats(static_cast<double>(a.low), static_cast<double>(a.high));
  }
  const Range result = apply(op, Range{a.low, a.high}, Range{b.low, b.high});
  return Interval::integers(result.low, result.high);
}

}  // namespace stof::expr
