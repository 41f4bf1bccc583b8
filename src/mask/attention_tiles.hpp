#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "mask/layout.hpp"

namespace stof::mask {

// What AttentionTiles::tile_bitmap says of 64 rows that need no bits.
inline constexpr std::int32_t kAllSeen = -1;
inline constexpr std::int32_t kNoneSeen = -2;

// The tiles of tile_q queries x 64 keys that an attention kernel visits, as it reads them.
//
// Query tile r = (b * mask_heads + h) * q_tiles + t covers queries from tile_q * t. Its entries are
// row_ptr[r] … row_ptr[r + 1] - 1: the key tiles of which it sees something, ascending. Entry e has
// tile_bitmap[e * parts + s] for each 64 rows s of the query tile, where parts is tile_q / 64, at
// least 1: kAllSeen, kNoneSeen, or the number of a bitmap of the layout. Where tile_q is 16 or 32
// it is what the rows of the query tile see, and the bitmap that of the 64 rows that they are
// among.
struct AttentionTiles {
  std::int64_t tile_q = 0;
  std::vector<std::int32_t> row_ptr;
  std::vector<std::int32_t> tile_col;
  std::vector<std::int32_t> tile_bitmap;
  std::vector<std::int32_t> order;  // every query tile, as longest_first(row_ptr) says

  std::int64_t parts() const { return tile_q < kTile ? 1 : tile_q / kTile; }

  friend bool operator==(const AttentionTiles&, const AttentionTiles&) = default;
};

// tile_q is 16, 32, 64, 128, 192 or 256. Throws GraphError on others, or more than 32 bits count.
AttentionTiles attention_tiles(const MaskLayout& layout, std::int64_t tile_q);

using LaneOrderedBitmap = std::array<std::uint32_t, 128>;

// lane_ordered_bitmap of every bitmap of the layout, in order.
std::vector<LaneOrderedBitmap> lane_ordered_bitmaps(const MaskLayout& layout);

// That of every tile, also where all or none are seen, so that nothing is looked up: that of tile j
// of tile row r is number r * tile_cols + j. What rows that do not exist see may be anything.
std::vector<LaneOrderedBitmap> bitmaps_of_all_tiles(const MaskLayout& layout);

}  // namespace stof::mask
