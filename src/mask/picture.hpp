#pragma once

#include <cstdint>

#include "base/image.hpp"
#include "mask/layout.hpp"

namespace stof::mask {

// What becomes of a pair (q, k). A pixel that stands for many is their mean.
inline constexpr base::Rgb kFullTile = {31, 78, 140};        // seen, in a tile that all is seen of
inline constexpr base::Rgb kSeenInPart = {217, 112, 38};     // seen, in a part tile
inline constexpr base::Rgb kHiddenInPart = {250, 228, 210};  // hidden, in a part tile
inline constexpr base::Rgb kEmptyTile = {245, 246, 248};     // hidden, in an empty tile

// One plane of a layout, b * mask_heads + h, with queries downwards and keys to the right. `cell` x
// `cell` pairs are a pixel; a power of two. Throws GraphError for a cell or plane that is none,
// and for more than 2^24 pixels.
base::Image draw(const MaskLayout& layout, std::int64_t plane, std::int64_t cell);

// The least cell for which no side of the picture has more pixels.
std::int64_t cell_for(const Extent& extent, std::int64_t max_pixels);

}  // namespace stof::mask
