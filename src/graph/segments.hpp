#pragma once

#include "graph/ir.hpp"

namespace stof::graph {

// Throws GraphError where the operators of a segment cannot run without others in between.
void check_segments(const Ir& ir);

}  // namespace stof::graph
