// The bitmap of a tile, eight keys a thread at a time.
#pragma once

#include "mask_layout/key_bits.cuh"
#include "mask_layout/tile_place.cuh"

namespace stof::mask_layout {

inline constexpr int kTile = static_cast<int>(mask::kTile);
inline constexpr int kPieces = kTile * kTile / kLanes;  // bytes of a bitmap

__device__ inline Point point_of(const TilePlace& place, int row, int key) {
  return {
      .batch = place.batch, .head = place.head, .query = place.query + row, .key = place.key + key};
}

// What the bits of a tile say.
struct Findings {
  bool is_any_seen;
  bool is_any_hidden;
};

// Pairs of a tile, by a block.
__device__ inline Findings evaluate_tile(const Program& program, const Grid& grid,
                                         const TilePlace& place, std::uint64_t* bitmap,
                                         const Slots& slots) {
  if (program.mask.row_slots != 0) {
    for (int row = static_cast<int>(threadIdx.x); row < kTile;
         row += static_cast<int>(blockDim.x)) {
      prepare_row(program, grid, point_of(place, row, 0), slots);
    }
    __syncthreads();
  }
  unsigned seen = 0;
  unsigned hidden = 0;
  for (int piece = static_cast<int>(threadIdx.x); piece < kPieces;
       piece += static_cast<int>(blockDim.x)) {
    const Point point = point_of(place, piece % kTile, piece / kTile * kLanes);
    const bool exists = point.query < grid.q_len && point.key < grid.kv_len;
    const unsigned bits = exists ? key_bits(program, grid, point, slots) : 0;
    seen |= bits;
    hidden |= exists ? run_of_bits(0, grid.kv_len - point.key) & ~bits : 0;
    reinterpret_cast<std::uint8_t*>(bitmap)[piece] = static_cast<std::uint8_t>(bits);
  }
  return {.is_any_seen = __syncthreads_or(seen != 0) != 0,
          .is_any_hidden = __syncthreads_or(hidden != 0) != 0};
}

}  // namespace stof::mask_layout
