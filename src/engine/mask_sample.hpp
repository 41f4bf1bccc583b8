#pragma once

#include <cstddef>

#include "graph/ir.hpp"
#include "stof/tensor.hpp"

namespace stof::engine {

// What input `input` of an attention of a static graph holds, numbers of keys or a tensor of a
// mask_input, where the mask is like its sample, or hides nothing where there is none: of numbers
// all keys; of bytes the sample itself; of offsets documents that begin where a query of the sample
// sees no key ahead of itself; of columns as many of the first keys of each row as there is room
// for.
HostTensor mask_sample(const graph::Ir& ir, const graph::Operator& attention, std::size_t input);

}  // namespace stof::engine
