#pragma once

#include "fusion/mask_arrays.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Attentions of few queries in which several heads share a key head: the queries of these heads
// become the rows of one head, so that its keys are read once (as FlashAttention packs them). Where
// one tile of 64 rows holds them, or they see many keys and half of the tiles are left; where a
// view would need a copy, only if they see so many keys that it is worth one. Not where a mask
// depends on the head. Shapes are static.
graph::Ir with_grouped_queries(graph::Ir ir, MaskArraysByMask& masks);

}  // namespace stof::fusion
