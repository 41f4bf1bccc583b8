#pragma once

#include <cstdint>
#include <vector>

#include "mask/attention_tiles.hpp"
#include "mask/group_bits.hpp"
#include "mask/layout.hpp"

namespace stof::mask {

inline constexpr std::int64_t kMostPacked = 16383 * kPackedGroup;  // queries, or keys

// Attention tiles that are packed of groups of 16 rows and of 16 keys that see each other, so that
// neither a few columns here and there nor rows that see much among rows that see little have
// others worked on beside them.
//
// Row groups of a plane are dealt to its tiles in order, but those that see something of more than
// twice as many key groups as the median one come first. The keys of a tile are the groups of which
// any of its rows sees something, as `lists` has them by four, 64 columns an entry. Groups side by
// side are put together to boxes of four as far as they go; single ones follow.
struct PackedTiles {
  // Rows of lists are tiles, those with the most entries first, and `order` says which one of all
  // planes each is; tile_col is empty, and tile_bitmap numbers `bitmaps`.
  AttentionTiles lists;
  // Row group number i of row r of the lists is half i % 2, the low one first, of number (r *
  // tile_q / 16 + i) / 2; 65535 where there is none.
  std::vector<std::int32_t> rows;
  // Two numbers an entry of four halves: a box of 64 or 16 keys that begins there by its first
  // group, in 14 bits, and its size above that: 3, or 1. 0 where none begins. The last entry is
  // filled up with group 16383, which no mask has.
  std::vector<std::int32_t> keys;
  // Of 64 rows of a tile and 64 columns of an entry. Equal ones are there once.
  std::vector<LaneOrderedBitmap> bitmaps;
};

// tile_q is 64, 128 or 192; no more than kMostPacked queries or keys. Throws GraphError where there
// are more entries than 32 bits count.
PackedTiles packed_tiles(const MaskLayout& layout, std::int64_t tile_q);

}  // namespace stof::mask
