#pragma once

#include "graph/ir.hpp"

namespace stof::graph {

// The graph with a number for every symbolic dim: static shapes throughout, the same ids. Throws
// GraphError where a value lacks, is out of the range of its dim, belongs to no dim, or does not
// fit an operator (such as a mask of data with other lengths).
Ir bind_dims(const Ir& ir, const DimValues& values);

}  // namespace stof::graph
