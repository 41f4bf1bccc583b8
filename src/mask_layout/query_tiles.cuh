// Lists of query tiles, each by a warp, from the classes of the 64 x 64 tiles.
#pragma once

#include <algorithm>

#include "mask/attention_tiles.hpp"
#include "mask_layout/list_work.cuh"

namespace stof::mask_layout {

// The 64 x 64 tiles of a query tile, in 32 bits, which tiles are counted in.
struct QueryTile {
  int first_tile;  // the first of its first tile row
  int cols;
  int tile_rows;        // that it goes over and that exist
  unsigned strips = 0;  // of tile_q 16 or 32: the bits of its rows, see TileClasses; else 0

  __device__ QueryTile(const Grid& grid, const AttentionTiles& lists, std::int64_t r) {
    const auto q_tiles = static_cast<int>(lists.q_tiles);
    const auto tile_q = static_cast<int>(lists.tile_q);
    const auto rows = static_cast<int>(grid.tile_rows);
    const auto number = static_cast<int>(r);
    const int plane = number < q_tiles ? 0 : number / q_tiles;
    const int first_query = (number - plane * q_tiles) * tile_q;
    const int tile_row = static_cast<int>(static_cast<unsigned>(first_query) / kTileQueries);
    cols = static_cast<int>(grid.tile_cols);
    first_tile = (plane * rows + tile_row) * cols;
    tile_rows = std::min(static_cast<int>(lists.parts()), rows - tile_row);
    if (tile_q < kTileQueries) {
      strips = ((1U << tile_q / kStripQueries) - 1) << first_query % kTileQueries / kStripQueries;
    }
  }

 private:
  static constexpr int kTileQueries = static_cast<int>(mask::kTile);
  static constexpr int kStripQueries = 16;
};

// What the strips of a query tile see of a part tile: all, nothing, or what its bits say.
__device__ inline std::int32_t code_of_strips(std::int32_t code, unsigned of_tile, unsigned own) {
  const bool is_any_hidden = (of_tile >> 4 & own) != 0;
  return (of_tile & own) == 0 ? mask::kNoneSeen : is_any_hidden ? code : mask::kAllSeen;
}

struct PartCodes {
  std::int32_t values[kMostParts];
  bool is_active = false;
};

// In a column, which may lie behind the last.
__device__ inline PartCodes codes_of(const TileClasses& classes, const QueryTile& tile, int col) {
  PartCodes codes;
  const int first = tile.first_tile + col;
#pragma unroll
  for (int s = 0; s < kMostParts; ++s) {
    const bool exists = s < tile.tile_rows && col < tile.cols;
    codes.values[s] = exists ? classes.codes[first + s * tile.cols] : mask::kNoneSeen;
  }
  if (tile.strips != 0 && codes.values[0] >= 0) {
    codes.values[0] = code_of_strips(codes.values[0], classes.strips[first], tile.strips);
  }
#pragma unroll
  for (const std::int32_t code : codes.values) {
    codes.is_active = codes.is_active || code != mask::kNoneSeen;
  }
  return codes;
}

// The entries of a query tile, by a warp.
__device__ inline std::int32_t length_of(const TileClasses& classes, const QueryTile& tile) {
  std::int32_t length = 0;
  for (int begin = 0; begin < tile.cols; begin += kWarp) {
    const PartCodes codes = codes_of(classes, tile, begin + lane_of_thread());
    length += __popc(__ballot_sync(kFullWarp, codes.is_active));
  }
  return length;
}

// Leaves the length of a query tile where row_ptr will be, and among the lengths.
__device__ inline void count_query_tile(const ListWork& work, const QueryTiles& tiles,
                                        std::int64_t r) {
  const std::int32_t length =
      is_broken(work) ? 0 : length_of(work.classes, QueryTile(work.grid, tiles.lists, r));
  if (lane_of_thread() == 0) {
    tiles.lists.row_ptr[r + 1] = length;
    tiles.lengths[r] = length;
  }
}

// Writes the entries of a query tile from `entry` on, by a warp.
__device__ inline void write_entries(const ListWork& work, const TileClasses& classes,
                                     const AttentionTiles& lists, const QueryTile& tile,
                                     std::int32_t entry) {
  const auto parts = static_cast<int>(lists.parts());
  const unsigned below = (1U << lane_of_thread()) - 1;
  for (int begin = 0; begin < tile.cols; begin += kWarp) {
    const int col = begin + lane_of_thread();
    const PartCodes codes = codes_of(classes, tile, col);
    const unsigned active = __ballot_sync(kFullWarp, codes.is_active);
    if (codes.is_active) {
      const std::int64_t at = entry + __popc(active & below);
      lists.tile_col[at] = col;
#pragma unroll
      for (int s = 0; s < kMostParts; ++s) {
        if (s < parts) {
          lists.tile_bitmap[at * parts + s] = final_code(work, codes.values[s]);
        }
      }
    }
    entry += __popc(active);
  }
}

__device__ inline void fill_query_tile(const ListWork& work, const QueryTiles& tiles,
                                       std::int64_t r) {
  if (!is_broken(work)) {
    write_entries(work, work.classes, tiles.lists, QueryTile(work.grid, tiles.lists, r),
                  tiles.lists.row_ptr[r]);
  }
}

// The place of a query tile in the order: behind those that are longer, and equal ones before it.
__device__ inline void order_query_tile(const QueryTiles& tiles, std::int64_t r) {
  const std::int32_t own = tiles.lengths[r];
  std::int32_t place = 0;
  for (std::int64_t other = lane_of_thread(); other < tiles.count; other += kWarp) {
    const std::int32_t length = tiles.lengths[other];
    place += length > own || (length == own && other < r);
  }
  place = sum_of_warp(place);
  if (lane_of_thread() == 0) {
    tiles.lists.order[place] = static_cast<std::int32_t>(r);
  }
}

}  // namespace stof::mask_layout
