#pragma once

#include "mask/layout.hpp"

namespace stof::engine {

// mask::build_layout, on the GPU where that is faster: for masks of many tiles without captures,
// all of whose operators give the same there to the last bit. Throws what mask::build_layout does,
// and CudaError.
mask::MaskLayout build_layout(int device, const Mask& mask, const mask::Extent& extent);

}  // namespace stof::engine
