#pragma once

#include <string>
#include <vector>

#include "expr/node.hpp"

namespace stof::expr {

// An expression whose numbers are arguments, so that one kernel serves all that differ in numbers
// alone.
struct Skeleton {
  struct Argument {
    std::string name;  // arg0, arg1, … from left to right, but for names that are taken
    Value value;       // an integer or a float
  };

  Expr expr;
  std::vector<Argument> arguments;
};

// Every literal number becomes an argument, each occurrence its own, and keep() a comparison of
// hash() >>> 40 with an argument. What changes the code to be good for stays: 0 anywhere, the count
// of a shift, a divisor that is a power of two (a shift or a mask then), a mask of `&` that is a
// power of two less one or its complement, and a literal index. So do truth values.
Skeleton skeleton(const Expr& expr);

}  // namespace stof::expr
