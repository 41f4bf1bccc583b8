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
  __device__ TilePlace(const Grid& grid, std::int32_t tile)
      : TilePlace(grid, tile / static_cast<std::int32_t>(grid.tile_cols),
                  tile % static_cast<std::int32_t>(grid.tile_cols)) {}

  __device__ TilePlace(const Grid& grid, std::int32_t row, std::int32_t col) {
    const auto rows = static_cast<std::int32_t>(grid.tile_rows);
    const auto heads = static_cast<std::int32_t>(grid.mask_heads);
    const std::int32_t plane = row < rows ? 0 : row / rows;
    batch = heads == 1 ? plane : plane / heads;
    head = heads == 1 ? 0 : plane % heads;
    query = (row - plane * rows) * mask::kTile;
    key = col * mask::kTile;
  }

  // The first query row of its plane, among those of all.
  __device__ std::int64_t first_row_of_plane(const Grid& grid) const {
    return (batch * grid.mask_heads + head) * grid.q_len;
  }
};

}  // namespace stof::mask_layout
