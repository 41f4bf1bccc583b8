#include "mask_layout/memory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "mask/layout.hpp"
#include "stof/error.hpp"

namespace stof::mask_layout {

namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kAlignment = 256;
constexpr std::int64_t kLaneWords = 128;

void check_count(std::string_view what, std::int64_t count) {
  if (count > kMaxCount) {
    throw GraphError(fmt::format("mask: {} {}, more than the limit of {}", count, what, kMaxCount));
  }
}

TileRows take_rows(Carver& carver, std::int64_t rows, std::int64_t entries) {
  return {.row_ptr = carver.take<std::int32_t>(rows + 1),
          .col_idx = carver.take<std::int32_t>(entries)};
}

BitmapPool take_pool(Carver& carver, const Grid& grid, std::int64_t capacity) {
  BitmapPool pool;
  pool.capacity = capacity;
  // Filled to a quarter, a bitmap is seldom compared with another; to a half, with one in two.
  pool.table_size = static_cast<std::int64_t>(
      std::bit_ceil(4 * static_cast<std::uint64_t>(std::max<std::int64_t>(capacity, 1))));
  pool.words = carver.take<std::uint64_t>(capacity * mask::kTileWords);
  pool.table = carver.take<BitmapEntry>(pool.table_size);
  pool.number = carver.take<std::int32_t>(pool.table_size);
  pool.numbers = carver.take<std::int32_t>(grid.row_count() + 1);
  pool.leader = carver.take<std::int32_t>(capacity);
  return pool;
}

AttentionTiles take_attention_tiles(Carver& carver, const Grid& grid, std::int64_t tile_q,
                                    std::int64_t active_tiles) {
  constexpr std::array<std::int64_t, 6> kTileQ = {16, 32, 64, 128, 192, 256};
  if (std::ranges::find(kTileQ, tile_q) == kTileQ.end()) {
    throw GraphError(fmt::format(
        "mask: tiles of {} queries; 16, 32, 64, 128, 192 and 256 can be derived", tile_q));
  }
  AttentionTiles tiles{.tile_q = tile_q, .q_tiles = (grid.q_len + tile_q - 1) / tile_q};
  const std::int64_t rows = grid.planes() * tiles.q_tiles;
  const std::int64_t entries = std::min(
      rows * grid.tile_cols, active_tiles * std::max<std::int64_t>(1, mask::kTile / tile_q));
  check_count(fmt::format("tiles of {} queries", tile_q), rows);
  check_count(fmt::format("parts of active tiles of {} queries", tile_q), entries * tiles.parts());
  tiles.row_ptr = carver.take<std::int32_t>(rows + 1);
  tiles.tile_col = carver.take<std::int32_t>(entries);
  tiles.tile_bitmap = carver.take<std::int32_t>(entries * tiles.parts());
  tiles.order = carver.take<std::int32_t>(rows);
  return tiles;
}

struct QueryTileCounts {
  std::int64_t all = 0;   // of all sizes
  std::int64_t most = 0;  // of one
};

QueryTileCounts take_query_tiles(Carver& carver, Layout& layout, const LayoutRequest& request,
                                 std::int64_t active_tiles) {
  QueryTileCounts counts;
  layout.attention_tiles.clear();
  for (const std::int64_t tile_q : request.tile_q) {
    if (std::ranges::count(request.tile_q, tile_q) > 1) {
      throw GraphError(fmt::format("mask: tiles of {} queries are asked for twice", tile_q));
    }
    layout.attention_tiles.push_back(
        take_attention_tiles(carver, layout.grid, tile_q, active_tiles));
    const std::int64_t tiles = layout.grid.planes() * layout.attention_tiles.back().q_tiles;
    counts.all += tiles;
    counts.most = std::max(counts.most, tiles);
  }
  return counts;
}

SortSpace take_sort_space(Carver& carver, std::int64_t lengths, std::int64_t rows) {
  return {.lengths = carver.take<std::int32_t>(lengths),
          .sorted_lengths = carver.take<std::int32_t>(rows),
          .spare_lengths = carver.take<std::int32_t>(rows),
          .spare_numbers = carver.take<std::int32_t>(rows),
          .digits = carver.take<std::int32_t>(digit_count(rows))};
}

}  // namespace

std::byte* Carver::take_bytes(std::size_t size_bytes) {
  std::byte* piece = memory_ == nullptr ? nullptr : memory_ + size_bytes_;
  size_bytes_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return piece;
}

void carve_codes(Carver& carver, Buffers& buffers) {
  const std::int64_t tiles = buffers.layout.grid.tile_count();
  buffers.layout.counts = carver.take<LayoutCounts>(1);
  buffers.layout.tile_codes = carver.take<std::int32_t>(tiles);
  buffers.classes = {.codes = carver.take<std::int32_t>(tiles),
                     .strips = carver.take<std::uint8_t>(tiles)};
}

void carve_lists(Carver& carver, Buffers& buffers, const LayoutRequest& request,
                 const Capacity& capacity) {
  Layout& layout = buffers.layout;
  const Grid& grid = layout.grid;
  const std::int64_t rows = grid.row_count();
  const std::int64_t active =
      std::min(grid.tile_count(), capacity.full_tiles + capacity.part_tiles);
  layout.full = take_rows(carver, rows, capacity.full_tiles);
  layout.part = take_rows(carver, rows, capacity.part_tiles);
  layout.load = take_rows(carver, rows, active);
  layout.part_bitmap = carver.take<std::int32_t>(capacity.part_tiles);
  layout.bitmaps = carver.take<std::uint64_t>(capacity.part_tiles * mask::kTileWords);
  layout.lane_bitmaps = carver.take<std::uint32_t>(capacity.part_tiles * kLaneWords);
  buffers.pool = take_pool(carver, grid, capacity.part_tiles);
  QueryTileCounts query_tiles = take_query_tiles(carver, layout, request, active);
  if (request.rows || request.key_rows) {
    const std::int64_t query_rows = grid.query_rows();
    check_count("query rows", query_rows);
    layout.rows = {.first = carver.take<std::int32_t>(query_rows),
                   .end = carver.take<std::int32_t>(query_rows),
                   .count = carver.take<std::int32_t>(query_rows),
                   .order = carver.take<std::int32_t>(query_rows)};
    if (request.key_rows) {
      layout.rows.key_row_ptr = carver.take<std::int32_t>(query_rows + 1);
    }
    query_tiles.most = std::max(query_tiles.most, query_rows);
  }
  if (query_tiles.most > 0) {
    buffers.space = take_sort_space(carver, query_tiles.all, query_tiles.most);
  }
}

void carve_at_once(Carver& carver, Buffers& buffers, const LayoutRequest& request,
                   const Capacity& capacity) {
  Layout& layout = buffers.layout;
  const std::int64_t tiles = layout.grid.tile_count();
  layout.counts = carver.take<LayoutCounts>(1);
  layout.tile_codes = carver.take<std::int32_t>(tiles);
  layout.lane_bitmaps = carver.take<std::uint32_t>(capacity.part_tiles * kLaneWords);
  buffers.classes = {.codes = layout.tile_codes, .strips = carver.take<std::uint8_t>(tiles)};
  take_query_tiles(carver, layout, request, tiles);
  const std::int64_t stretches = (layout.grid.tile_cols + kLeastStretch - 1) / kLeastStretch;
  buffers.at_once.seeing = carver.take<uint4>(layout.grid.row_count() * stretches);
}

void carve_keys(Carver& carver, Buffers& buffers, const Capacity& capacity) {
  check_count("seen pairs", capacity.keys);
  buffers.layout.rows.key_col = carver.take<std::int32_t>(capacity.keys);
}

void carve_runs(Carver& carver, Buffers& buffers) {
  const std::int64_t query_rows = buffers.layout.grid.query_rows();
  check_count("query rows", query_rows);
  buffers.layout.rows.first = carver.take<std::int32_t>(query_rows);
  buffers.layout.rows.end = carver.take<std::int32_t>(query_rows);
}

}  // namespace stof::mask_layout
