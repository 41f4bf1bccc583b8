#include "mask/packed_tiles.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "mask/longest_first.hpp"
#include "mask/tiles.hpp"

namespace stof::mask {

namespace {

constexpr std::int32_t kNoRowGroup = 65535;
constexpr std::int32_t kNoKeyGroup = 16383;
constexpr std::int32_t kBoxOf1 = 1 << 14;
constexpr std::int32_t kBoxOf4 = 3 << 14;
constexpr std::int64_t kGroups = kTile / kPackedGroup;  // of an entry, or of 64 rows
constexpr std::uint64_t kAll = ~std::uint64_t{0};

using Rows = std::array<std::uint64_t, kTile>;  // 64 columns of each of 64 rows

// What groups of 16 rows see of groups of 16 keys.
class Groups {
 public:
  explicit Groups(const MaskLayout& layout)
      : layout_(layout), rows_(layout.bitmaps.size() / kTileWords) {
    base::parallel_for(std::ssize(rows_),
                       [&](std::int64_t n) { rows_[n] = bitmap_rows(layout.bitmap(n)); });
  }

  // Puts what the rows of a group see of a group of keys to `rows`, from bit `shift` on.
  void add(std::int64_t plane, std::int64_t row_group, std::int64_t key_group, std::int64_t shift,
           std::span<std::uint64_t> rows) const {
    const std::int64_t tile_row = plane * layout_.tile_rows + row_group / kGroups;
    const auto column = static_cast<std::int32_t>(key_group / kGroups);
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
    const Rows& of_tile =
        rows_[layout_.part_bitmap[layout_.part.row_ptr[tile_row] + (found - part.begin())]];
    const std::int64_t first_row = row_group % kGroups * kPackedGroup;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t seen = of_tile[first_row + i] >> (first_key % kTile);
      rows[i] |= (seen & low_bits(kPackedGroup)) << shift;
    }
  }

 private:
  const MaskLayout& layout_;
  std::vector<Rows> rows_;
};

// Those of a plane in the order in which they are dealt.
std::vector<std::int32_t> row_groups(const TileLists& lists, std::int64_t plane) {
  const std::int64_t first = plane * lists.q_tiles;
  std::vector<std::int32_t> groups;
  std::vector<std::int32_t> lengths;
  for (std::int32_t group = 0; group < lists.q_tiles; ++group) {
    groups.push_back(group);
    lengths.push_back(lists.row_ptr[first + group + 1] - lists.row_ptr[first + group]);
  }
  std::vector<std::int32_t> ascending = lengths;
  const auto median = ascending.begin() + std::ssize(ascending) / 2;
  std::ranges::nth_element(ascending, median);
  std::stable_partition(groups.begin(), groups.end(),
                        [&](std::int32_t group) { return lengths[group] > 2 * *median; });
  return groups;
}

// The groups of keys of a tile, in the order of its columns, and what is copied to each.
struct Columns {
  std::vector<std::int32_t> groups;
  std::vector<std::int32_t> boxes;
};

Columns columns_of(std::span<const std::int32_t> ascending) {
  Columns columns;
  std::vector<std::int32_t> single;
  for (std::size_t i = 0; i < ascending.size();) {
    const bool is_box =
        i + kGroups <= ascending.size() && ascending[i + kGroups - 1] - ascending[i] == kGroups - 1;
    if (!is_box) {
      single.push_back(ascending[i++]);
      continue;
    }
    columns.boxes.push_back(ascending[i] | kBoxOf4);
    for (std::int64_t n = 0; n < kGroups; ++n) {
      columns.groups.push_back(ascending[i++]);
    }
    columns.boxes.resize(columns.groups.size());
  }
  single.resize(static_cast<std::size_t>(ceil_div(std::ssize(single), kGroups) * kGroups),
                kNoKeyGroup);
  for (const std::int32_t group : single) {
    columns.groups.push_back(group);
    columns.boxes.push_back(group | kBoxOf1);
  }
  return columns;
}

// What is known of a tile before bitmaps have numbers.
struct Tile {
  Columns columns;
  std::vector<std::int32_t> status;  // kAllSeen, kNoneSeen, or 0: of `bits`, in order
  std::vector<Rows> bits;
};

class Packer {
 public:
  Packer(const MaskLayout& layout, std::int64_t tile_q)
      : layout_(layout),
        tile_q_(tile_q),
        groups_(layout),
        lists_(derive_tiles(layout, kPackedGroup, kPackedGroup)) {}

  PackedTiles pack() {
    const std::int64_t planes = layout_.mask_batch * layout_.mask_heads;
    const std::int64_t per_tile = tile_q_ / kPackedGroup;
    const std::int64_t plane_tiles = ceil_div(layout_.extent.q_len, tile_q_);
    std::vector<std::int32_t> rows;
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const std::vector<std::int32_t> of_plane = row_groups(lists_, plane);
      rows.insert(rows.end(), of_plane.begin(), of_plane.end());
      rows.resize(static_cast<std::size_t>((plane + 1) * plane_tiles * per_tile), kNoRowGroup);
    }
    std::vector<Tile> tiles(static_cast<std::size_t>(planes * plane_tiles));
    base::parallel_for(std::ssize(tiles), [&](std::int64_t r) {
      tiles[r] = tile(r / plane_tiles, std::span(rows).subspan(r * per_tile, per_tile));
    });
    return numbered(tiles, rows);
  }

 private:
  Tile tile(std::int64_t plane, std::span<const std::int32_t> rows) const {
    std::vector<std::int32_t> keys;
    for (const std::int32_t group : rows) {
      if (group != kNoRowGroup) {
        const std::int64_t row = plane * lists_.q_tiles + group;
        keys.insert(keys.end(), lists_.col_idx.begin() + lists_.row_ptr[row],
                    lists_.col_idx.begin() + lists_.row_ptr[row + 1]);
      }
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    Tile tile{.columns = columns_of(keys), .status = {}, .bits = {}};
    for (std::int64_t first = 0; first < std::ssize(tile.columns.groups); first += kGroups) {
      for (std::int64_t row = 0; row < std::ssize(rows); row += kGroups) {
        add_entry(tile, plane, rows.subspan(row, kGroups),
                  std::span(tile.columns.groups).subspan(first, kGroups));
      }
    }
    return tile;
  }

  // Rows that do not exist may see anything.
  void add_entry(Tile& tile, std::int64_t plane, std::span<const std::int32_t> rows,
                 std::span<const std::int32_t> keys) const {
    Rows bits{};
    std::uint64_t any = 0;
    std::uint64_t all = kAll;
    for (std::int64_t i = 0; i < kGroups; ++i) {
      if (rows[i] == kNoRowGroup) {
        continue;
      }
      const std::span group = std::span(bits).subspan(i * kPackedGroup, kPackedGroup);
      for (std::int64_t j = 0; j < kGroups; ++j) {
        if (keys[j] != kNoKeyGroup) {
          groups_.add(plane, rows[i], keys[j], j * kPackedGroup, group);
        }
      }
      const std::int64_t existing = layout_.extent.q_len - rows[i] * kPackedGroup;
      for (const std::uint64_t row : group.first(std::min(existing, kPackedGroup))) {
        any |= row;
        all &= row;
      }
    }
    const bool is_part = any != 0 && all != kAll;
    tile.status.push_back(is_part ? 0 : any == 0 ? kNoneSeen : kAllSeen);
    if (is_part) {
      tile.bits.push_back(bits);
    }
  }

  PackedTiles numbered(const std::vector<Tile>& tiles,
                       std::span<const std::int32_t> rows_of_tiles) const {
    const std::size_t per_tile = tile_q_ / kPackedGroup;
    std::vector<std::int32_t> ends = {0};
    for (const Tile& tile : tiles) {
      ends.push_back(ends.back() + static_cast<std::int32_t>(std::ssize(tile.columns.boxes)));
    }
    PackedTiles packed;
    packed.lists.tile_q = tile_q_;
    packed.lists.order = longest_first(ends);
    packed.lists.row_ptr.push_back(0);
    std::vector<std::int32_t> rows;
    std::vector<std::int32_t> boxes;
    std::map<Rows, std::int32_t> numbers;
    for (const std::int32_t number_of_tile : packed.lists.order) {
      const Tile& tile = tiles[number_of_tile];
      const auto of_tile = rows_of_tiles.subspan(number_of_tile * per_tile, per_tile);
      rows.insert(rows.end(), of_tile.begin(), of_tile.end());
      boxes.insert(boxes.end(), tile.columns.boxes.begin(), tile.columns.boxes.end());
      packed.lists.row_ptr.push_back(static_cast<std::int32_t>(std::ssize(boxes) / kGroups));
      auto bits = tile.bits.begin();
      for (const std::int32_t status : tile.status) {
        std::int32_t& entry = packed.lists.tile_bitmap.emplace_back(status);
        if (status == 0) {
          const auto [number, is_new] =
              numbers.emplace(*bits, static_cast<std::int32_t>(packed.bitmaps.size()));
          if (is_new) {
            packed.bitmaps.push_back(lane_ordered_bitmap(bitmap_of_rows(*bits)));
          }
          entry = number->second;
          ++bits;
        }
      }
    }
    packed.rows = in_halves(rows);
    packed.keys = in_halves(boxes);
    return packed;
  }

  static std::vector<std::int32_t> in_halves(std::span<const std::int32_t> numbers) {
    std::vector<std::int32_t> halves;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
      const auto low = static_cast<std::uint32_t>(numbers[i]);
      const auto high = static_cast<std::uint32_t>(numbers[i + 1]);
      halves.push_back(static_cast<std::int32_t>(low | high << 16));
    }
    return halves;
  }

  const MaskLayout& layout_;
  std::int64_t tile_q_;
  Groups groups_;
  TileLists lists_;
};

}  // namespace

PackedTiles packed_tiles(const MaskLayout& layout, std::int64_t tile_q) {
  STOF_CHECK(tile_q == 64 || tile_q == 128 || tile_q == 192) << tile_q << " query rows a tile";
  STOF_CHECK(layout.extent.q_len <= kMostPacked && layout.extent.kv_len <= kMostPacked)
      << layout.extent.q_len << " x " << layout.extent.kv_len;
  return Packer(layout, tile_q).pack();
}

}  // namespace stof::mask
