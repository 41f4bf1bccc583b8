// Rounding to nearest is monotone, so the ends of a result are rounded like its values. NaN is kept
// apart from the range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "expr/semantics.hpp"
#include "expr/typed_interval.hpp"

namespace stof::expr {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Range {
  double low;
  double high;
  bool may_be_nan;
};

constexpr Range kAll{-kInfinity, kInfinity, true};

bool holds_zero(Range a) {
  return a.low <= 0 && a.high >= 0;
}

bool holds_infinity(Range a) {
  return a.low == -kInfinity || a.high == kInfinity;
}

// Another value where an end is NaN would take thought; it is rare.
Range checked(Range a) {
  return std::isnan(a.low) || std::isnan(a.high) ? kAll : a;
}

Range negate(Range a) {
  return {-a.high, -a.low, a.may_be_nan};
}

Range add(Range a, Range b) {
  const bool may_cancel =
      (a.high == kInfinity && b.low == -kInfinity) || (a.low == -kInfinity && b.high == kInfinity);
  return checked({a.low + b.low, a.high + b.high, a.may_be_nan || b.may_be_nan || may_cancel});
}

template <typename Operation>
Range corners(Range a, Range b, bool may_be_nan, Operation operation) {
  Range result{kInfinity, -kInfinity, may_be_nan};
  for (const double x : {a.low, a.high}) {
    for (const double y : {b.low, b.high}) {
      const double value = operation(x, y);
      if (std::isnan(value)) {
        return kAll;
      }
      result.low = std::min(result.low, value);
      result.high = std::max(result.high, value);
    }
  }
  return result;
}

Range multiply(Range a, Range b) {
  const bool may_be_nan = a.may_be_nan || b.may_be_nan || (holds_zero(a) && holds_infinity(b)) ||
                          (holds_infinity(a) && holds_zero(b));
  return corners(a, b, may_be_nan, [](double x, double y) { return x * y; });
}

Range divide(Range a, Range b) {
  if (holds_zero(b)) {
    return kAll;
  }
  const bool may_be_nan = a.may_be_nan || b.may_be_nan || (holds_infinity(a) && holds_infinity(b));
  return corners(a, b, may_be_nan, [](double x, double y) { return x / y; });
}

// The smaller, or the one that is no NaN.
Range minimum(Range a, Range b) {
  Range result{std::min(a.low, b.low), std::min(a.high, b.high), a.may_be_nan && b.may_be_nan};
  if (a.may_be_nan) {
    result.high = std::max(result.high, b.high);
  }
  if (b.may_be_nan) {
    result.high = std::max(result.high, a.high);
  }
  return result;
}

Range maximum(Range a, Range b) {
  return negate(minimum(negate(a), negate(b)));
}

Range absolute(Range a) {
  if (holds_zero(a)) {
    return {0, std::max(-a.low, a.high), a.may_be_nan};
  }
  return a.low > 0 ? a : negate(a);
}

// The ends of a growing function that is exact to a unit in the last place or two, here or in a
// kernel, kept to what it may give at all.
template <typename Function>
Range growing(Range a, Function function, double least, double most) {
  double low = function(a.low);
  double high = function(a.high);
  for (int i = 0; i < 4; ++i) {
    low = std::nextafter(low, -kInfinity);
    high = std::nextafter(high, kInfinity);
  }
  return {std::max(low, least), std::min(high, most), a.may_be_nan};
}

// The part of a that is not negative; the rest gives NaN.
Range natural(Range a) {
  return {std::max(a.low, 0.0), std::max(a.high, 0.0), a.may_be_nan || a.low < 0};
}

Range apply(Op op, Range a, Range b) {
  switch (op) {
    case Op::Negate:
      return negate(a);
    case Op::Abs:
      return absolute(a);
    case Op::Exp:
      return growing(
          a, [](double x) { return std::exp(x); }, 0, kInfinity);
    case Op::Log:
      return growing(
          natural(a), [](double x) { return x == 0 ? -kInfinity : std::log(x); }, -kInfinity,
          kInfinity);
    case Op::Sqrt: {
      const Range root = natural(a);
      return {std::sqrt(root.low), std::sqrt(root.high), root.may_be_nan};
    }
    case Op::Tanh:
      return growing(
          a, [](double x) { return std::tanh(x); }, -1, 1);
    case Op::Add:
      return add(a, b);
    case Op::Subtract:
      return add(a, negate(b));
    case Op::Multiply:
      return multiply(a, b);
    case Op::Divide:
      return divide(a, b);
    case Op::Min:
      return minimum(a, b);
    case Op::Max:
      return maximum(a, b);
    default:
      break;
  }
  STOF_CHECK(false) << "operation " << info(op).text << " on floats";
  return kAll;
}

Range range_of(const Interval& a) {
  return {a.float_low(), a.float_high(), a.may_be_nan};
}

Interval comparison(Op op, Range a, Range b) {
  Interval result = compare(op, a.low, a.high, b.low, b.high);
  if (a.may_be_nan || b.may_be_nan) {
    result = hull(result, Interval::point(ScalarType::Bool, op == Op::NotEqual ? 1 : 0));
  }
  return result;
}

Interval to_integers(Range a) {
  const Interval result = Interval::integers(to_integer(a.low), to_integer(a.high));
  return a.may_be_nan ? hull(result, Interval::integers(0, 0)) : result;
}

}  // namespace

Interval apply_to_floats(Op op, const Interval& a, const Interval& b) {
  if (is_comparison(op)) {
    return comparison(op, range_of(a), range_of(b));
  }
  if (op == Op::ToInt) {
    return to_integers(range_of(a));
  }
  const Range result = apply(op, range_of(a), range_of(b));
  return Interval::floats(result.low, result.high, result.may_be_nan);
}

}  // namespace stof::expr
