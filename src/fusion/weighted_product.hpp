#pragma once

#include <functional>
#include <optional>

#include "fusion/match.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// A product with a weight, and the bias that is added to it, as rewrites take them.
struct WeightedProduct {
  int op = -1;
  int weight = -1;
  int product = -1;  // its result
  int add = -1;      // the operator that adds the bias; -1
  int bias = -1;     // [n]
  int result = -1;   // with the bias
};

// The product at an operator, if its second factor is a matrix that may take part, it does not turn
// its first one, and nothing else sets it apart from other products. A bias is with it if it may
// take part as well. `may_take_part` is asked of a value and the rank it should have.
std::optional<WeightedProduct> weighted_product_at(
    const graph::Ir& ir, const Readers& readers, int op,
    const std::function<bool(int value, int rank)>& may_take_part);

}  // namespace stof::fusion
