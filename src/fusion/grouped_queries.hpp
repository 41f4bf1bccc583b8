#pragma once

#include "graph/ir.hpp"

namespace stof::fusion {

// Attentions of few queries in which several heads share a key head: the queries of these heads
// become the rows of one head, so that its keys are read once (as FlashAttention packs them). Up to
// 64 rows, which is what a tile of a kernel holds; not where a view would need a copy, nor where
// keys have lengths of their own, a score is modified, a mask depends on the head or the output of
// log-sum-exps is wanted. Shapes are static.
graph::Ir with_grouped_queries(graph::Ir ir);

}  // namespace stof::fusion
