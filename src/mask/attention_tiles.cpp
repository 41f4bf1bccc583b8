#include "mask/attention_tiles.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "mask/tiles.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

// The number of the bitmap of a part tile of the layout.
std::int32_t bitmap_of(const MaskLayout& layout, std::int64_t tile_row, std::int32_t col) {
  const auto part = layout.part.row(tile_row);
  const auto found = std::ranges::lower_bound(part, col);
  STOF_CHECK(found != part.end() && *found == col) << "tile " << tile_row << ", " << col;
  return layout.part_bitmap[layout.part.row_ptr[tile_row] + (found - part.begin())];
}

std::int32_t code_of(const MaskLayout& layout, TileClass sub_class, std::int64_t tile_row,
                     std::int32_t col) {
  switch (sub_class) {
    case TileClass::Empty:
      return kNoneSeen;
    case TileClass::Full:
      return kAllSeen;
    case TileClass::Part:
      break;
  }
  return bitmap_of(layout, tile_row, col);
}

}  // namespace

AttentionTiles attention_tiles(const MaskLayout& layout, std::int64_t tile_q) {
  TileLists lists = derive_tiles(layout, tile_q, kTile);
  AttentionTiles tiles{.tile_q = tile_q,
                       .row_ptr = std::move(lists.row_ptr),
                       .tile_col = std::move(lists.col_idx),
                       .tile_bitmap = {},
                       .order = std::move(lists.order)};
  const std::int64_t parts = tiles.parts();
  if (std::ssize(tiles.tile_col) > std::numeric_limits<std::int32_t>::max() / parts) {
    throw GraphError(fmt::format("mask: {} active tiles of {} queries, more than the limit of {}",
                                 tiles.tile_col.size(), tile_q,
                                 std::numeric_limits<std::int32_t>::max() / parts));
  }
  tiles.tile_bitmap.resize(tiles.tile_col.size() * parts);
  base::parallel_for(std::ssize(tiles.order), [&](std::int64_t r) {
    const std::int64_t first_tile_row =
        r / lists.q_tiles * layout.tile_rows + r % lists.q_tiles * tile_q / kTile;
    for (std::int64_t e = tiles.row_ptr[r]; e < tiles.row_ptr[r + 1]; ++e) {
      for (std::int64_t s = 0; s < parts; ++s) {
        const auto sub_class = static_cast<TileClass>(lists.sub_classes[e] >> (2 * s) & 3);
        tiles.tile_bitmap[e * parts + s] =
            code_of(layout, sub_class, first_tile_row + s, tiles.tile_col[e]);
      }
    }
  });
  return tiles;
}

std::vector<LaneOrderedBitmap> lane_ordered_bitmaps(const MaskLayout& layout) {
  std::vector<LaneOrderedBitmap> bitmaps(layout.bitmaps.size() / kTileWords);
  base::parallel_for(std::ssize(bitmaps),
                     [&](std::int64_t n) { bitmaps[n] = lane_ordered_bitmap(layout.bitmap(n)); });
  return bitmaps;
}

std::vector<LaneOrderedBitmap> bitmaps_of_all_tiles(const MaskLayout& layout) {
  std::vector<LaneOrderedBitmap> all(layout.row_count() * layout.tile_cols);
  base::parallel_for(layout.row_count(), [&](std::int64_t r) {
    const std::span of_row = std::span(all).subspan(r * layout.tile_cols, layout.tile_cols);
    for (const std::int32_t col : layout.full.row(r)) {
      std::array<std::uint64_t, kTile> rows;
      rows.fill(low_bits(std::min(layout.extent.kv_len - col * kTile, kTile)));
      of_row[col] = lane_ordered_bitmap(bitmap_of_rows(rows));
    }
    const auto part = layout.part.row(r);
    for (std::int64_t i = 0; i < std::ssize(part); ++i) {
      const std::int32_t bitmap = layout.part_bitmap[layout.part.row_ptr[r] + i];
      of_row[part[i]] = lane_ordered_bitmap(layout.bitmap(bitmap));
    }
  });
  return all;
}

}  // namespace stof::mask
