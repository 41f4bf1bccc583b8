#pragma once

#include "graph/ir.hpp"

namespace stof::fusion {

// Dense masks that arrive become part of the score of attentions so small that reading a byte for
// each score takes less than finding out which tiles a mask shows: -inf where a byte is 0. Those
// that read one mask do so all or none.
graph::Ir with_masks_in_scores(graph::Ir ir);

}  // namespace stof::fusion
