#include "mask/packed_tiles.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "mask/group_bits.hpp"
#include "mask/longest_first.hpp"
#include "mask/tiles.hpp"

namespace stof::mask {

namespace {

constexpr std::int32_t kNoRowGroup = 65535;
constexpr std::int32_t kNoKeyGroup = 16383;
constexpr std::int32_t kBoxOf1 = 1 << 14;
constexpr std::int32_t kBoxOf4 = 3 << 14;

// Those of a plane in the order in which they are dealt.
std::vector<std::int32_t> row_groups(const TileLists& lists, std::int64_t plane) {
  std::vector<std::int32_t> groups(lists.q_tiles);
  std::iota(groups.begin(), groups.end(), 0);
  const std::vector<bool> are_long = long_row_groups(lists, plane);
  std::stable_partition(groups.begin(), groups.end(),
                        [&](std::int32_t group) { return are_long[group]; });
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
    const bool is_box = i + kTileGroups <= ascending.size() &&
                        ascending[i + kTileGroups - 1] - ascending[i] == kTileGroups - 1;
    if (!is_box) {
      single.push_back(ascending[i++]);
      continue;
    }
    columns.boxes.push_back(ascending[i] | kBoxOf4);
    for (std::int64_t n = 0; n < kTileGroups; ++n) {
      columns.groups.push_back(ascending[i++]);
    }
    columns.boxes.resize(columns.groups.size());
  }
  single.resize(static_cast<std::size_t>(ceil_div(std::ssize(single), kTileGroups) * kTileGroups),
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
  std::vector<TileRowBits> bits;
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
    for (std::int64_t first = 0; first < std::ssize(tile.columns.groups); first += kTileGroups) {
      for (std::int64_t row = 0; row < std::ssize(rows); row += kTileGroups) {
        add_entry(tile, plane, rows.subspan(row, kTileGroups),
                  std::span(tile.columns.groups).subspan(first, kTileGroups));
      }
    }
    return tile;
  }

  void add_entry(Tile& tile, std::int64_t plane, std::span<const std::int32_t> rows,
                 std::span<const std::int32_t> keys) const {
    const TileSight sight = groups_.sight(plane, rows, keys);
    tile.status.push_back(sight.status);
    if (sight.status == 0) {
      tile.bits.push_back(sight.bits);
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
    NumberedBitmaps numbers;
    for (const std::int32_t number_of_tile : packed.lists.order) {
      const Tile& tile = tiles[number_of_tile];
      const auto of_tile = rows_of_tiles.subspan(number_of_tile * per_tile, per_tile);
      rows.insert(rows.end(), of_tile.begin(), of_tile.end());
      boxes.insert(boxes.end(), tile.columns.boxes.begin(), tile.columns.boxes.end());
      packed.lists.row_ptr.push_back(static_cast<std::int32_t>(std::ssize(boxes) / kTileGroups));
      auto bits = tile.bits.begin();
      for (const std::int32_t status : tile.status) {
        std::int32_t& entry = packed.lists.tile_bitmap.emplace_back(status);
        if (status == 0) {
          entry = numbers.number(*bits);
          ++bits;
        }
      }
    }
    packed.bitmaps = std::move(numbers).take();
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
  GroupBits groups_;
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
