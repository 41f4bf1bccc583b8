#pragma once

#include <span>

#include "graph/ir.hpp"

namespace stof::fusion {

// Operators of a static graph, in its order, as a graph of their own that kernels run as they run
// them in the whole graph. Its inputs and weights are the tensors that the operators read, its
// outputs the results that others read. Views between are part of it: those of operands from the
// last value that lies packed and aligned on, and those behind the result of an attention, which
// decide how that lies. Names are those of the graph.
graph::Ir segment_graph(const graph::Ir& ir, std::span<const int> operators);

}  // namespace stof::fusion
