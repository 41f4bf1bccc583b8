#include "mask/group_bits.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "mask/bits.hpp"

namespace stof::mask {

GroupBits::GroupBits(const MaskLayout& layout)
    : layout_(layout), rows_(layout.bitmaps.size() / kTileWords) {
  base::parallel_for(std::ssize(rows_),
                     [&](std::int64_t n) { rows_[n] = bitmap_rows(layout.bitmap(n)); });
}

TileSight GroupBits::sight(std::int64_t plane, std::span<const std::int32_t> rows,
                           std::span<const std::int32_t> keys, std::int64_t columns) const {
  const std::uint64_t taken = low_bits(columns);
  TileSight sight;
  std::uint64_t any = 0;
  std::uint64_t all = taken;
  for (std::int64_t i = 0; i < kTileGroups; ++i) {
    const std::int64_t rows_left = layout_.extent.q_len - rows[i] * kPackedGroup;
    if (rows[i] < 0 || rows_left <= 0) {
      continue;
    }
    const std::span group = std::span(sight.bits).subspan(i * kPackedGroup, kPackedGroup);
    for (std::int64_t j = 0; j < kTileGroups; ++j) {
      if (keys[j] >= 0 && keys[j] * kPackedGroup < layout_.extent.kv_len) {
        add(plane, rows[i], keys[j], j * kPackedGroup, group);
      }
    }
    for (std::uint64_t& row : group) {
      row &= taken;
    }
    for (const std::uint64_t row : group.first(std::min(rows_left, kPackedGroup))) {
      any |= row;
      all &= row;
    }
  }
  sight.status = any == 0 ? kNoneSeen : all == taken ? kAllSeen : 0;
  return sight;
}

void GroupBits::add(std::int64_t plane, std::int64_t row_group, std::int64_t key_group,
                    std::int64_t shift, std::span<std::uint64_t> rows) const {
  const std::int64_t tile_row = plane * layout_.tile_rows + row_group / kTileGroups;
  const auto column = static_cast<std::int32_t>(key_group / kTileGroups);
  const std::int64_t first_key = key_group * kPackedGroup;
  if (std::ranges::binary_search(layout_.full.row(tile_row), column)) {
    const std::int64_t keys = std::min(layout_.extent.kv_len - first_key, kPackedGroup);
    for (std::uint64_t& row : rows) {
      row |= low_bits(keys) << shift;
    }
    return;
  }
  const auto part = layout_.part.row(tile_row);
  const auto found = std::ranges::lower_bound(part, column);
  if (found == part.end() || *found != column) {
    return;
  }
  const TileRowBits& of_tile =
      rows_[layout_.part_bitmap[layout_.part.row_ptr[tile_row] + (found - part.begin())]];
  const std::int64_t first_row = row_group % kTileGroups * kPackedGroup;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t seen = of_tile[first_row + i] >> (first_key % kTile);
    rows[i] |= (seen & low_bits(kPackedGroup)) << shift;
  }
}

std::int32_t NumberedBitmaps::number(const TileRowBits& bits) {
  const auto [known, is_new] = numbers_.emplace(bits, static_cast<std::int32_t>(bitmaps_.size()));
  if (is_new) {
    bitmaps_.push_back(lane_ordered_bitmap(bitmap_of_rows(bits)));
  }
  return known->second;
}

std::vector<bool> long_row_groups(const TileLists& lists, std::int64_t plane) {
  const std::int64_t first = plane * lists.q_tiles;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(lists.q_tiles));
  for (std::int64_t group = 0; group < lists.q_tiles; ++group) {
    lengths[group] = lists.row_ptr[first + group + 1] - lists.row_ptr[first + group];
  }
  std::vector<std::int32_t> ascending = lengths;
  const auto median = ascending.begin() + std::ssize(ascending) / 2;
  std::ranges::nth_element(ascending, median);
  std::vector<bool> are_long(lengths.size());
  for (std::size_t group = 0; group < lengths.size(); ++group) {
    are_long[group] = lengths[group] > 2 * *median;
  }
  return are_long;
}

}  // namespace stof::mask
