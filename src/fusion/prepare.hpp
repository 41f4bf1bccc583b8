#pragma once

#include "fusion/mask_arrays.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// A static graph as it is cut into segments: lengths of keys have values of their own, small
// dense masks are part of scores, attentions run over residue classes where their masks ask for it.
// What is prepared stays as it is.
graph::Ir prepare(const graph::Ir& ir, MaskArraysByMask& masks);

}  // namespace stof::fusion
