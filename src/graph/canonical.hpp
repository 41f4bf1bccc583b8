#pragma once

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "graph/ir.hpp"

namespace stof::graph {

// A graph without its names and without the order in which it was built. Two graphs of one digest
// mean the same, and what stands at one position in these lists plays one part in both: so a plan
// that was made for one of them is bound to the other by position.
struct Canonical {
  std::vector<int> operators;     // indices in topological order, views too
  std::vector<int> inputs;        // ids of values
  std::vector<int> weights;       // ids of values
  std::vector<int> outputs;       // indices in Ir::outputs
  std::vector<std::string> dims;  // names of the symbolic extents
  base::Digest digest;
};

// Operators stand as late as they can before what reads them, depth first from the outputs, so that
// a chain in which each has one reader is never parted; those of a segment stay together. What no
// output needs is left out, and operands keep their order.
//
// Outputs are ordered by depth and then as order_outputs says.
Canonical canonicalise(const Ir& ir);

// The canonical order of the operators that the outputs need, given the order of the outputs.
std::vector<int> canonical_order(const Ir& ir, const std::vector<int>& outputs);

// Indices in Ir::outputs, by depth and then by structure: by what makes and what reads them, never
// by names. Where outputs tie, the order is one of those that give the least description of the
// graph; they differ by a symmetry of it, so that each gives one digest.
//
// Real graphs have next to no ties. Where one is so symmetric, or made so that no symmetry is
// found, that the search passes its bound of about a tenth of a second, the order of Ir::outputs
// decides. Extents of several symbols, such as a - b, are known by their bounds and symbols only.
// Both could tell apart two graphs that are the same, never the reverse.
std::vector<int> order_outputs(const Ir& ir);

}  // namespace stof::graph
