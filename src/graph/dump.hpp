#pragma once

#include <string>

#include "graph/ir.hpp"

namespace stof::graph {

// A graph for people: inputs and weights, then a line an operator, then the outputs.
std::string dump(const Ir& ir);

// One operator as in dump: "%7 attention(%4, %5, %6; mask=k_pos <= q_pos) : float16[8, 12, 512,
// 64]".
std::string dump(const Ir& ir, const Operator& op);

}  // namespace stof::graph
