#pragma once

#include <cstdint>

#include "mask/layout.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// Where a tile is.
struct TilePlace {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t query;  // its first
  std::int64_t key;

  // In 32 bits, which tiles are counted in: division of 64 takes far longer.
  __device__ TilePlace(const Grid& grid, std::int32_t tile) {
    const auto tile_cols = static_cast<std::int32_t>(grid.tile_cols);
    const auto tile_rows = static_cast<std::int32_t>(grid.tile_rows);
    const auto heads = static_cast<std::int32_t>(grid.mask_heads);
    const std::int32_t row = tile / tile_cols;
    const std::int32_t plane = row / tile_rows;
    batch = plane / heads;
    head = plane % heads;
    query = row % tile_rows * mask::kTile;
    key = tile % tile_cols * mask::kTile;
  }
};

}  // namespace stof::mask_layout
