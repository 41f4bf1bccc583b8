#pragma once

#include <cstdint>
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
// Outputs are ordered by depth and structure; where these are equal, in the order of Ir::outputs.
// That last resort could tell apart two graphs that are the same, never the reverse.
Canonical canonicalise(const Ir& ir);

// The canonical order of the operators that the outputs need, given the order of the outputs.
std::vector<int> canonical_order(const Ir& ir, const std::vector<int>& outputs);

// One number a value, which depends on what makes and what reads it, never on names.
std::vector<std::uint64_t> structural_hashes(const Ir& ir);

}  // namespace stof::graph
