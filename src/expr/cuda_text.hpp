#pragma once

#include <map>
#include <set>
#include <string>

#include "expr/interval.hpp"
#include "stof/expr.hpp"

namespace stof::expr {

// What a kernel calls each scalar, table and capture:
//   a scalar    an operand of C type bool, int or float; of long long where its range needs 64 bits
//   a table     a pointer to int, long long or float entries; NAME.size may say how many they are,
//               so that other tables may stand there, and is an operand of type int
//   a capture   what is called with its indices: read_bias(i, j). NAME.size0, NAME.size1 … may say
//   how
//               many entries it has along each axis; without them it moves indices to the nearest
//               end
using CudaNames = std::map<std::string, std::string, std::less<>>;

struct CudaText {
  std::string text;
  ScalarType type = ScalarType::Bool;
  bool is_wide = false;           // an integer of type long long, not int
  std::set<std::string> helpers;  // functions of device/expression.cuh that the text calls
};

// What a kernel does with an expression.
struct CudaUse {
  // Bounds of what `ranges` bounds that hold in this kernel alone. They say whether an index that
  // no float has a part in is inside its table or capture, and change nothing else of the text, so
  // that kernels of other bounds share it.
  Ranges inside = {};
  // Floats are good to some 2^-18 of their value, by functions of device/attention_score.cuh: a
  // quotient is a product with a reciprocal, tanh has no branch. Where a score is linear in a key,
  // it is made of a KeyNumber of device/expression.cuh, which says how close that is. Else, and
  // where an integer or a truth value is made of them, they are as C++ has them.
  bool is_score = false;
  std::string tanh = "stof::score_tanh";  // the function, for floats of scores
};

// The expression as C++ for a kernel. Integers are 32 bits wide where the ranges prove that
// operands and results fit, else 64; floats are of type float. A division is a plain `/`, `%`, `>>`
// or `&` where it is proven the same; divisors are checked for 0, and indices for the ends of their
// table, where they are not proven to be sound. `ranges` bounds scalars and captures; a table's
// range, if given, takes the place of its entries, and that of NAME.size bounds how many they are.
// Throws ExpressionError for a name that `names` lacks.
CudaText cuda_text(const Expr& expr, const CudaNames& names, const Ranges& ranges,
                   const CudaUse& use = {});

}  // namespace stof::expr
