#pragma once

#include <cstdint>
#include <vector>

#include "mask/layout.hpp"

namespace stof::mask {

enum class TileClass : std::uint8_t { Empty = 0, Full = 1, Part = 2 };

// The tiles of tile_q queries x tile_k keys that a kernel visits, by the rules of MaskLayout: a
// tile is empty if no existing pair is seen, full if all are, part otherwise.
//
// Query tile r = (b * mask_heads + h) * q_tiles + t covers queries from tile_q * t. Its active key
// tiles, ascending, are col_idx[row_ptr[r]] … col_idx[row_ptr[r + 1] - 1]; key tile c covers keys
// from tile_k * c. For each of them sub_classes holds the TileClass of every 64 rows, two bits
// each, the first rows in the lowest bits (one class where tile_q <= 64); 64 rows of which none
// exists are empty. A tile is full if all of its existing rows are.
struct TileLists {
  std::int64_t tile_q = 0;
  std::int64_t tile_k = 0;
  std::int64_t q_tiles = 0;
  std::int64_t kv_tiles = 0;
  std::int64_t mask_batch = 1;
  std::int64_t mask_heads = 1;
  std::vector<std::int32_t> row_ptr;
  std::vector<std::int32_t> col_idx;
  std::vector<TileClass> classes;
  std::vector<std::uint8_t> sub_classes;
  // Every query tile, also those without an active key tile: most active tiles first, of equals the
  // lower number first.
  std::vector<std::int32_t> order;

  friend bool operator==(const TileLists&, const TileLists&) = default;
};

// tile_q is 16, 32, 64, 128, 192 or 256; tile_k a multiple of 8 from 8 to 256. Works from the
// bitmaps, never from the mask. Throws GraphError on other tiles or more than 32 bits count.
TileLists derive_tiles(const MaskLayout& layout, std::int64_t tile_q, std::int64_t tile_k);

}  // namespace stof::mask
