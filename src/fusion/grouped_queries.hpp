#pragma once

#include "graph/ir.hpp"

namespace stof::fusion {

// Attentions of few queries in which several heads share a key head: the queries of these heads
// become the rows of one head, so that its keys are read once (as FlashAttention packs them). Where
// one tile of 64 rows holds them, or keys are many and half of the tiles are left; where a view
// would need a copy, only of so many keys that it is worth one. Not where a score is modified, a
// mask depends on the head or the output of log-sum-exps is wanted. Shapes are static.
graph::Ir with_grouped_queries(graph::Ir ir);

}  // namespace stof::fusion
