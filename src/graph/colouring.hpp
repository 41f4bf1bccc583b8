#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/ir.hpp"

namespace stof::graph {

using Colour = std::uint64_t;

// A graph without names and order: nodes read and make values, and values of one colour have, as
// far as is known, one part in it. Besides the operators, a node gives an input or weight its
// extents. Besides the tensors, symbolic extents and segments are values, since what shares them
// belongs together.
struct ColouredGraph {
  // A value, and how the node comes by it: two edges of one role could change places.
  struct Edge {
    Colour role = 0;
    int value = 0;
  };

  struct Node {
    Colour label = 0;
    std::vector<Edge> reads = {};
    std::vector<Edge> makes = {};
  };

  std::vector<Node> nodes;      // in topological order
  std::vector<Colour> colours;  // of values
  std::vector<int> ids;         // of values, in Ir::values; -1 where there is none
  std::vector<bool> is_output;  // of values
};

// Of what the outputs need. Extents of several symbols count by their bounds and symbols only.
ColouredGraph coloured_graph(const Ir& ir);

// A colour for the ordered pair.
Colour combine(Colour a, Colour b);
// A colour for all of them, whatever their order.
Colour combine_unordered(std::vector<Colour> colours);

// Which of the colours occur once.
std::vector<bool> find_unique(const std::vector<Colour>& colours);

// How many steps refine() may still take, each one value or edge.
struct Budget {
  std::size_t steps = 0;
};

// Gives each value a colour that also stands for what makes it and, all the way up, what reads it.
void recolour(ColouredGraph& graph);

// Recolours until no two values of one colour are told apart any more. False where the budget runs
// out before that.
bool refine(ColouredGraph& graph, Budget& budget);

// The parts of a refined graph that are held together only by values with colours of their own;
// without these values, which live on in labels and colours.
std::vector<ColouredGraph> take_apart(const ColouredGraph& graph);

}  // namespace stof::graph
