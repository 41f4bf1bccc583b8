#pragma once

#include "mask/layout.hpp"
#include "mask_layout/layout.hpp"

namespace stof::mask_layout {

// The layout on the host, of this extent. What builds it must have ended. Throws CudaError.
mask::MaskLayout fetch(const Layout& layout, const mask::Extent& extent);

}  // namespace stof::mask_layout
