#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "expr/node.hpp"

namespace stof::test {

// Random expressions of every operation, over the names below. The same seed gives the same ones.
class RandomExpression {
 public:
  explicit RandomExpression(unsigned seed) : random_(seed) {}

  static constexpr const char* kIntegers[] = {"q_pos", "k_pos", "dim.hidden"};
  static constexpr const char* kFloats[] = {"score", "attr.epsilon"};
  static constexpr const char* kTruths[] = {"flag"};

  bool with_captures = true;
  bool with_tables = true;
  bool with_floats = true;

  static Table offsets() { return {"offsets", std::vector<std::int64_t>{0, 3, 9, -4, 512, 7}}; }
  static Table slopes() { return {"slopes", std::vector<double>{0.5, -0.25, 1e-3}}; }
  static Capture lengths() { return {"lengths", DType::Int32, 1}; }
  static Capture bias() { return {"bias", DType::Float16, 2}; }

  static ExprNames names() {
    ExprNames names;
    for (const char* name : kIntegers) {
      names.scalars.emplace(name, ScalarType::Int);
    }
    for (const char* name : kFloats) {
      names.scalars.emplace(name, ScalarType::Float);
    }
    for (const char* name : kTruths) {
      names.scalars.emplace(name, ScalarType::Bool);
    }
    names.tables.emplace("offsets", offsets());
    names.tables.emplace("slopes", slopes());
    names.captures.emplace("lengths", lengths());
    names.captures.emplace("bias", bias());
    return names;
  }

  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  std::int64_t integer() {
    switch (below(8)) {
      case 0:
        return below(2) == 0 ? std::numeric_limits<std::int64_t>::min()
                             : std::numeric_limits<std::int64_t>::max();
      case 1:
        return static_cast<std::int64_t>(random_());
      case 2:
        return std::int64_t{1} << below(63);
      case 3:
        return (std::int64_t{1} << below(63)) - 1;
      default:
        return below(41) - 20;
    }
  }

  double real() {
    switch (below(10)) {
      case 0:
        return std::numeric_limits<double>::infinity();
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return std::numeric_limits<double>::quiet_NaN();
      case 3:
        return below(2) == 0 ? -0.0 : 0.0;
      case 4:
        return std::ldexp(1.0 + below(1000) / 1000.0, below(400) - 200);
      case 5:
        return below(100);
      default:
        return (below(2001) - 1000) / 64.0;
    }
  }

  Expr any(int depth) {
    switch (below(3)) {
      case 0:
        return truth(depth);
      case 1:
        return whole(depth);
      default:
        return number(depth);
    }
  }

  Expr truth(int depth) {
    if (depth == 0) {
      return below(3) == 0 ? Expr(below(2) == 0) : Expr::scalar(kTruths[0], ScalarType::Bool);
    }
    const int d = depth - 1;
    switch (below(12)) {
      case 0:
        return !truth(d);
      case 1:
        return truth(d) && truth(d);
      case 2:
        return truth(d) || truth(d);
      case 3:
        return truth(d) == truth(d);
      case 4:
        return truth(d) ^ truth(d);
      case 5:
        return select(truth(d), truth(d), truth(d));
      case 6:
        return keep(whole(d), whole(d), whole(d), below(1001) / 1000.0);
      case 7:
        return with_floats ? compare(number(d), number(d)) : truth(d);
      case 8:
        return with_floats ? compare(whole(d), number(d)) : truth(d);
      default:
        return compare(whole(d), whole(d));
    }
  }

  Expr whole(int depth) {
    if (depth == 0) {
      return below(2) == 0 ? Expr(integer()) : Expr::scalar(kIntegers[below(3)]);
    }
    const int d = depth - 1;
    switch (below(24)) {
      case 0:
        return -whole(d);
      case 1:
        return ~whole(d);
      case 2:
        return whole(d) + whole(d);
      case 3:
        return whole(d) - whole(d);
      case 4:
        return whole(d) * whole(d);
      case 5:
        return whole(d) / whole(d);
      case 6:
        return whole(d) % whole(d);
      case 7:
        return whole(d) & whole(d);
      case 8:
        return whole(d) | whole(d);
      case 9:
        return whole(d) ^ whole(d);
      case 10:
        return whole(d) << whole(d);
      case 11:
        return whole(d) >> whole(d);
      case 12:
        return shift_right_logical(whole(d), whole(d));
      case 13:
        return select(truth(d), whole(d), whole(d));
      case 14:
        return min(whole(d), whole(d));
      case 15:
        return max(whole(d), whole(d));
      case 16:
        return abs(whole(d));
      case 17:
        return ceil_div(whole(d), whole(d));
      case 18:
        return with_floats ? to_int(number(d)) : whole(d);
      case 19:
        return hash(whole(d), whole(d), whole(d));
      case 20:
        return draw(whole(d), whole(d), whole(d), whole(d));
      case 21:
        return with_tables ? offsets()[whole(d)] : whole(d);
      case 22:
        return with_captures ? lengths()(whole(d)) : whole(d);
      default:
        return whole(0);
    }
  }

  Expr number(int depth) {
    if (depth == 0) {
      return below(2) == 0 ? Expr(real()) : Expr::scalar(kFloats[below(2)], ScalarType::Float);
    }
    const int d = depth - 1;
    switch (below(17)) {
      case 0:
        return -number(d);
      case 1:
        return number(d) + number(d);
      case 2:
        return number(d) - whole(d);
      case 3:
        return whole(d) * number(d);
      case 4:
        return number(d) / number(d);
      case 5:
        return select(truth(d), number(d), whole(d));
      case 6:
        return min(number(d), number(d));
      case 7:
        return max(number(d), number(d));
      case 8:
        return abs(number(d));
      case 9:
        return to_float(whole(d));
      case 10:
        return exp(number(d));
      case 11:
        return log(number(d));
      case 12:
        return sqrt(number(d));
      case 13:
        return tanh(number(d));
      case 14:
        return with_tables ? slopes()[whole(d)] : number(d);
      case 15:
        return with_captures ? bias()(whole(d), whole(d)) : number(d);
      default:
        return number(0);
    }
  }

 private:
  Expr compare(const Expr& a, const Expr& b) {
    switch (below(6)) {
      case 0:
        return a == b;
      case 1:
        return a != b;
      case 2:
        return a < b;
      case 3:
        return a <= b;
      case 4:
        return a > b;
      default:
        return a >= b;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace stof::test
