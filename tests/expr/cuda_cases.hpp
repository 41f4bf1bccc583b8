#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "expr/cuda_text.hpp"
#include "random_expression.hpp"

// Random expressions whose CUDA text is compiled into the test: the generator writes them, the test
// draws the same ones again and compares.
namespace stof::test {

inline constexpr int kCudaCases = 600;

struct CudaArguments {
  std::int64_t q_pos;
  std::int64_t k_pos;
  std::int64_t hidden;
  bool flag;
  double score;
  double epsilon;
};

struct CudaResult {
  std::int64_t integer;
  double number;
};

using CudaFunction = CudaResult (*)(const CudaArguments&);

// In the generated file.
extern const CudaFunction kCudaFunctions[kCudaCases];

struct CudaCase {
  Expr expr;
  expr::Ranges ranges;
};

// Floats of few operations on small values, so that those of 32 bits stay near those of 64.
inline Expr tame_number(RandomExpression& random, int depth) {
  if (depth == 0) {
    switch (random.below(4)) {
      case 0:
        return {(random.below(65) - 32) / 8.0};
      case 1:
        return Expr::scalar("attr.epsilon", ScalarType::Float);
      case 2:
        return RandomExpression::slopes()[Expr::scalar("q_pos") % 5];
      default:
        return Expr::scalar("score", ScalarType::Float);
    }
  }
  const Expr a = tame_number(random, depth - 1);
  const Expr b = tame_number(random, depth - 1);
  switch (random.below(12)) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return a / (abs(b) + 1.0);
    case 4:
      return min(a, b);
    case 5:
      return max(a, -b);
    case 6:
      return sqrt(abs(a));
    case 7:
      return tanh(a);
    case 8:
      return exp(min(a, 2.0));
    case 9:
      return log(abs(a) + 0.5);
    case 10:
      return select(Expr::scalar("flag", ScalarType::Bool), a, b);
    default:
      return a + (Expr::scalar("k_pos") % 64 - 20);
  }
}

inline expr::Interval position_range(RandomExpression& random) {
  switch (random.below(4)) {
    case 0: {
      const std::int64_t a = random.integer();
      const std::int64_t b = random.integer();
      return expr::Interval::integers(std::min(a, b), std::max(a, b));
    }
    case 1: {
      const std::int64_t low = random.below(100) - 50;
      return expr::Interval::integers(low, low + random.below(3000));
    }
    case 2:
      return expr::Interval::integers(-2147483647 - 1, 2147483647);
    default:
      return expr::Interval::integers(0, 4095);
  }
}

inline CudaCase cuda_case(int index) {
  RandomExpression random(1000 + static_cast<unsigned>(index));
  random.with_floats = false;
  expr::Ranges ranges;
  for (const char* name : RandomExpression::kIntegers) {
    ranges[name] = position_range(random);
  }
  ranges["lengths"] = expr::Interval::integers(-200, 200);
  switch (index % 3) {
    case 0:
      return {random.whole(1 + random.below(4)), ranges};
    case 1:
      return {random.truth(1 + random.below(4)), ranges};
    default:
      return {tame_number(random, 1 + random.below(3)), ranges};
  }
}

inline expr::CudaNames cuda_names() {
  return {{"q_pos", "q_pos"},     {"k_pos", "k_pos"},          {"dim.hidden", "hidden"},
          {"flag", "flag"},       {"score", "score"},          {"attr.epsilon", "epsilon"},
          {"offsets", "offsets"}, {"lengths", "read_lengths"}, {"slopes", "slopes"},
          {"bias", "read_bias"}};
}

}  // namespace stof::test
