// Lists of query tiles, each by a warp, from the classes of the 64 x 64 tiles.
#pragma once

#include <algorithm>

#include "mask_layout/tile_rows.cuh"

namespace stof::mask_layout {

struct QueryTile {
  std::int64_t plane;
  std::int64_t first_query;

  __device__ QueryTile(const QueryTiles& tiles, std::int64_t r) {
    const auto q_tiles = static_cast<std::uint32_t>(tiles.lists.q_tiles);
    plane = static_cast<std::uint32_t>(r) / q_tiles;
    first_query = static_cast<std::uint32_t>(r) % q_tiles * tiles.lists.tile_q;
  }
};

// The bits of inner tile word of which the pairs exist, `rows` and `columns` from its corner.
__device__ inline std::uint64_t existing_pairs(std::int64_t rows, std::int64_t columns) {
  const auto count = [](std::int64_t n) {
    return static_cast<unsigned>(std::min(std::max(n, std::int64_t{0}), std::int64_t{8}));
  };
  const std::uint64_t row = (1U << count(columns)) - 1;
  const std::uint64_t all = row * 0x0101010101010101;
  return count(rows) == 8 ? all : all & ((std::uint64_t{1} << 8 * count(rows)) - 1);
}

// What the 16 or 32 rows of the query tile see of a part tile: all, nothing, or what its bits say.
__device__ inline std::int32_t code_of_rows(const ListWork& work, std::int64_t tile_q,
                                            std::int32_t code, std::int64_t query,
                                            std::int64_t col) {
  const std::uint64_t* bitmap =
      work.pool.words + std::int64_t{work.pool.table[code].owner} * mask::kTileWords;
  const auto first = static_cast<int>(query % mask::kTile / 8);
  const auto inner_rows = static_cast<int>(tile_q / 8);
  bool is_any_seen = false;
  bool is_any_hidden = false;
  for (int word = 0; word < 8 * inner_rows; ++word) {
    const int inner_row = word % inner_rows;
    const int inner_col = word / inner_rows;
    const std::uint64_t seen = bitmap[8 * inner_col + first + inner_row];
    const std::uint64_t existing =
        existing_pairs(work.grid.q_len - query - 8 * inner_row,
                       work.grid.kv_len - col * mask::kTile - 8 * inner_col);
    is_any_seen = is_any_seen || seen != 0;
    is_any_hidden = is_any_hidden || (existing & ~seen) != 0;
  }
  return !is_any_seen ? mask::kNoneSeen : is_any_hidden ? code : mask::kAllSeen;
}

struct PartCodes {
  std::int32_t values[kMostParts];  // with table entries for bitmaps
  bool is_active = false;
};

__device__ inline PartCodes codes_of(const ListWork& work, const AttentionTiles& lists,
                                     const QueryTile& tile, std::int64_t col) {
  PartCodes codes;
  const auto parts = static_cast<int>(lists.parts());
#pragma unroll
  for (int s = 0; s < kMostParts; ++s) {
    const std::int64_t query = tile.first_query + s * mask::kTile;
    const auto tile_row =
        tile.plane * work.grid.tile_rows +
        static_cast<std::uint32_t>(query) / static_cast<std::uint32_t>(mask::kTile);
    std::int32_t code = mask::kNoneSeen;
    if (s < parts && query < work.grid.q_len && col < work.grid.tile_cols) {
      code = work.classes[tile_row * work.grid.tile_cols + col];
    }
    if (code >= 0 && lists.tile_q < mask::kTile) {
      code = code_of_rows(work, lists.tile_q, code, query, col);
    }
    codes.values[s] = code;
    codes.is_active = codes.is_active || code != mask::kNoneSeen;
  }
  return codes;
}

// Leaves the length of a query tile where row_ptr will be, and among the lengths.
__device__ inline void count_query_tile(const ListWork& work, const QueryTiles& tiles,
                                        std::int64_t r) {
  const QueryTile tile(tiles, r);
  std::int32_t count = 0;
  const std::int64_t cols = is_broken(work) ? 0 : work.grid.tile_cols;
  for (std::int64_t begin = 0; begin < cols; begin += kWarp) {
    count += codes_of(work, tiles.lists, tile, begin + lane_of_thread()).is_active;
  }
  count = sum_of_warp(count);
  if (lane_of_thread() == 0) {
    tiles.lists.row_ptr[r + 1] = count;
    tiles.lengths[r] = count;
  }
}

__device__ inline void fill_query_tile(const ListWork& work, const QueryTiles& tiles,
                                       std::int64_t r) {
  const QueryTile tile(tiles, r);
  const AttentionTiles& lists = tiles.lists;
  const std::int64_t parts = lists.parts();
  std::int64_t entry = lists.row_ptr[r];
  const std::int64_t cols = is_broken(work) ? 0 : work.grid.tile_cols;
  const unsigned below = (1U << lane_of_thread()) - 1;
  for (std::int64_t begin = 0; begin < cols; begin += kWarp) {
    const std::int64_t col = begin + lane_of_thread();
    const PartCodes codes = codes_of(work, lists, tile, col);
    const unsigned active = __ballot_sync(kFullWarp, codes.is_active);
    if (codes.is_active) {
      const std::int64_t at = entry + __popc(active & below);
      lists.tile_col[at] = static_cast<std::int32_t>(col);
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
