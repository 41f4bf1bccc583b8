#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>

#include "expr/program.hpp"
#include "expr/semantics.hpp"

namespace stof::expr {

// What a value may be: all from `low` to `high`, both included. The ends are words as in a Program:
// integers, truth values as 0 and 1, or the bits of doubles.
struct Interval {
  ScalarType type = ScalarType::Bool;
  bool may_be_nan = false;  // a float may also be NaN
  std::int64_t low = 0;
  std::int64_t high = 1;

  static Interval integers(std::int64_t low, std::int64_t high) {
    return {ScalarType::Int, false, low, high};
  }
  static Interval floats(double low, double high, bool may_be_nan = false) {
    return {ScalarType::Float, may_be_nan, word_of(low), word_of(high)};
  }
  static Interval truths(bool may_be_false, bool may_be_true) {
    return {ScalarType::Bool, false, may_be_false ? 0 : 1, may_be_true ? 1 : 0};
  }
  static Interval all(ScalarType type);
  static Interval point(ScalarType type, std::int64_t word);

  double float_low() const { return float_of(low); }
  double float_high() const { return float_of(high); }

  bool is_point() const { return low == high && !may_be_nan; }
  bool is_true() const { return type == ScalarType::Bool && low == 1; }
  bool is_false() const { return type == ScalarType::Bool && high == 0; }
  bool contains(std::int64_t word) const;

  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval hull(const Interval& a, const Interval& b);

// What the operation may give for operands in the intervals; `type` is that of the last operand, as
// in an Instruction. Sound for every operation, wrapped or not; three-valued on truth values.
Interval apply(Op op, ScalarType type, std::span<const Interval> operands);

// What the table holds at the indices.
Interval bounds(const Table& table, const Interval& index);

// What the program may give for scalars, in its order, in the intervals. Captures are anything, or
// what their interval says where some are given.
Interval bounds(const Program& program, std::span<const Interval> scalars,
                std::span<const Interval> captures = {});

// Intervals of scalars and captures by name; what is not named may be anything.
using Ranges = std::map<std::string, Interval, std::less<>>;

Interval bounds(const Expr& expr, const Ranges& ranges);

}  // namespace stof::expr
