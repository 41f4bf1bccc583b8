#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mask/attention_tiles.hpp"
#include "mask/layout.hpp"

namespace stof::mask {

// A mask of windows with global tokens (Beltagy et al., "Longformer", 2020; Ainslie et al., "ETC",
// 2020; Zaheer et al., "Big Bird", 2020), as attention/global_local_sm90 reads it. Queries and keys
// go by groups of 16. Global queries, at most 128, are the row groups that see something of more
// than twice as many key groups as the median one; global keys, at most 128, are the key groups
// that more than half of the others see; and what else those see are local keys, which lie in a
// window that moves along with a query tile of 64. Where there are global queries, the windows of
// all query tiles together reach over all keys.
//
// What 64 rows see of 64 columns is kAllSeen, kNoneSeen or the number of a bitmap of `bitmaps`.
// Rows and columns that do not exist, and rows that are none of those that are meant, may be seen.
struct GlobalLocal {
  static constexpr std::int64_t kMostLocalKeys = 192;
  static constexpr std::int64_t kMostGlobalKeys = 128;
  static constexpr std::int64_t kMostGlobalTiles = 2;  // of 64 global queries
  static constexpr std::int64_t kTileNumbers = 8;
  static constexpr std::int64_t kFirstPiece = 3;
  static constexpr std::int64_t kWritten = 7;

  // Box i of query tile t is of the keys from first_key + 64 (t + i) on, as far as they exist; its
  // local keys are the first local_keys of its boxes. Both are multiples of 16.
  std::int64_t first_key = 0;
  std::int64_t local_keys = 0;

  // Global keys by groups, ascending, then groups that do not exist, up to kMostGlobalKeys.
  std::int64_t global_keys = 0;
  std::vector<std::int32_t> key_groups;
  // Row groups of global queries, ascending, dealt to tiles of four; then those that do not exist.
  std::vector<std::int32_t> row_groups;

  // Of query tile t, from number t * kTileNumbers on: what is seen of box i at i, and of 64 global
  // keys each at kFirstPiece + i; and at kWritten bit g where rows 16 g … are none of global
  // queries. A global key is seen there alone, and not in a box.
  std::vector<std::int32_t> local_status;
  // What tile t of global queries sees of the keys from first_key + 64 i on, for all boxes of query
  // tiles: number t * (boxes of all query tiles) + i.
  std::vector<std::int32_t> global_status;
  std::vector<LaneOrderedBitmap> bitmaps;  // equal ones are there once

  std::int64_t boxes_of_tile() const;  // as many as local_keys take, at least 1
  std::int64_t global_tiles() const { return static_cast<std::int64_t>(row_groups.size()) / 4; }
};

// Nothing where the mask is none that all batch elements and heads share, or no window holds what
// is not global.
std::optional<GlobalLocal> global_local(const MaskLayout& layout);

// The same as attention/resident_sm90 reads it: a bitmap for each 64 rows and 64 columns, in order,
// also where all or none are seen, so that nothing is looked up.
struct GlobalLocalBits {
  // Of each query tile, what is seen of its boxes, then of 64 global keys each.
  std::vector<LaneOrderedBitmap> local;
  // Of each tile of global queries, what is seen of 64 keys each, from key 0 on.
  std::vector<LaneOrderedBitmap> global;
};
GlobalLocalBits global_local_bits(const MaskLayout& layout, const GlobalLocal& split);

// The numbers of up to eight groups, of 16 bits each; 65535 where there is none.
std::array<std::int64_t, 2> packed_groups(const std::vector<std::int32_t>& groups);

}  // namespace stof::mask
