#pragma once

#include <cstddef>

#include "graph/ir.hpp"
#include "stof/tensor.hpp"

namespace stof::engine {

// What a tensor of a mask_input, input `input` of an attention of a static graph, holds where the
// mask is like its sample, or hides nothing where there is none: of bytes the sample itself; of
// offsets documents that begin where it has a query see no key ahead of itself; of columns as many
// of the first keys of each row as there is room for; of lengths all keys.
HostTensor mask_sample(const graph::Ir& ir, const graph::Operator& attention, std::size_t input);

}  // namespace stof::engine
