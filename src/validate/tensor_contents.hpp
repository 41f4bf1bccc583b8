#pragma once

#include "execute/replay.hpp"
#include "graph/ir.hpp"
#include "validate/hostile_tensors.hpp"

namespace stof::validate {

// What the tensors of a graph hold, in the order in which programs of it have them. Views of the
// tensors that are given.
execute::TensorContents contents_of(const graph::Ir& ir, const HostTensors& tensors);

}  // namespace stof::validate
