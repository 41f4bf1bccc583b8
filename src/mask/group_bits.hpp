#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "mask/attention_tiles.hpp"
#include "mask/layout.hpp"
#include "mask/tiles.hpp"

namespace stof::mask {

inline constexpr std::int64_t kPackedGroup = 16;  // query rows, or keys, that are packed together
inline constexpr std::int64_t kTileGroups = kTile / kPackedGroup;  // of 64 rows, or keys

using TileRowBits = std::array<std::uint64_t, kTile>;  // 64 columns of each of 64 rows

// What 64 rows see of 64 columns: kAllSeen, kNoneSeen, or 0 where the bits say it.
struct TileSight {
  std::int32_t status = kNoneSeen;
  TileRowBits bits = {};
};

// What groups of 16 rows see of groups of 16 keys. The layout outlives it.
class GroupBits {
 public:
  explicit GroupBits(const MaskLayout& layout);

  // Of four groups of rows and four of keys, those whose numbers are out of range being none, and
  // of the first `columns` alone. Rows that do not exist may see anything.
  TileSight sight(std::int64_t plane, std::span<const std::int32_t> rows,
                  std::span<const std::int32_t> keys, std::int64_t columns = kTile) const;

 private:
  // Puts what the rows of a group see of a group of keys to `rows`, from bit `shift` on.
  void add(std::int64_t plane, std::int64_t row_group, std::int64_t key_group, std::int64_t shift,
           std::span<std::uint64_t> rows) const;

  const MaskLayout& layout_;
  std::vector<TileRowBits> rows_;  // of each bitmap
};

// Bitmaps by numbers, equal ones once.
class NumberedBitmaps {
 public:
  // That of the bits, a new one where there are no equal ones yet.
  std::int32_t number(const TileRowBits& bits);

  std::vector<LaneOrderedBitmap> take() && { return std::move(bitmaps_); }

 private:
  std::map<TileRowBits, std::int32_t> numbers_;
  std::vector<LaneOrderedBitmap> bitmaps_;
};

// Which row groups of a plane see something of more than twice as many key groups as the median
// one; `lists` are derive_tiles(layout, kPackedGroup, kPackedGroup).
std::vector<bool> long_row_groups(const TileLists& lists, std::int64_t plane);

}  // namespace stof::mask
