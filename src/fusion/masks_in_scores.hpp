#pragma once

#include <functional>

#include "graph/ir.hpp"

namespace stof::fusion {

// How long a graph should take, in microseconds; infinite where no templates run it.
using PredictUs = std::function<double(const graph::Ir&)>;

// Dense masks that arrive become part of scores, -inf where a byte is 0, where reading a byte for
// each score should take less than finding out which tiles a mask shows. Those that read one mask
// do so all or none. Both ways are predicted, of graphs of these attentions alone.
graph::Ir with_masks_in_scores(graph::Ir ir, const PredictUs& predict_us);

}  // namespace stof::fusion
