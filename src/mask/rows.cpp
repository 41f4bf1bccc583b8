#include "mask/rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "mask/bits.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

// The query rows of one tile row: where they are in the lists, and how many exist.
struct TileRow {
  std::int64_t begin = 0;
  std::int64_t rows = 0;
};

TileRow band_of(const MaskLayout& layout, std::int64_t tile_row) {
  const std::int64_t plane = tile_row / layout.tile_rows;
  const std::int64_t q = tile_row % layout.tile_rows * kTile;
  return {.begin = plane * layout.extent.q_len + q,
          .rows = std::min(kTile, layout.extent.q_len - q)};
}

std::int64_t query_rows(const MaskLayout& layout) {
  return layout.mask_batch * layout.mask_heads * layout.extent.q_len;
}

std::int64_t keys_of_tile(const MaskLayout& layout, std::int64_t col) {
  return std::min(kTile, layout.extent.kv_len - col * kTile);
}

// Full tiles are the same for every row of a band, so they cost no work per row.
void span_full_tiles(const MaskLayout& layout, std::int64_t tile_row, const TileRow& band,
                     RowSpans& spans) {
  const auto full = layout.full.row(tile_row);
  if (full.empty()) {
    return;
  }
  const std::int64_t last = full.back();
  const std::int64_t keys = (std::ssize(full) - 1) * kTile + keys_of_tile(layout, last);
  for (std::int64_t r = band.begin; r < band.begin + band.rows; ++r) {
    spans.first[r] = static_cast<std::int32_t>(full.front() * kTile);
    spans.end[r] = static_cast<std::int32_t>(last * kTile + keys_of_tile(layout, last));
    spans.count[r] = static_cast<std::int32_t>(keys);
  }
}

void span_part_tile(std::int64_t col, const std::array<std::uint64_t, kTile>& rows,
                    const TileRow& band, RowSpans& spans) {
  for (std::int64_t i = 0; i < band.rows; ++i) {
    if (rows[i] == 0) {
      continue;
    }
    const std::int64_t r = band.begin + i;
    const auto first = static_cast<std::int32_t>(col * kTile + std::countr_zero(rows[i]));
    const auto end = static_cast<std::int32_t>((col + 1) * kTile - std::countl_zero(rows[i]));
    spans.first[r] = spans.count[r] == 0 ? first : std::min(spans.first[r], first);
    spans.end[r] = std::max(spans.end[r], end);
    spans.count[r] += std::popcount(rows[i]);
  }
}

// Calls visit(part tile column, its rows of 64 keys) for the part tiles of a tile row.
template <typename Visit>
void for_each_part_tile(const MaskLayout& layout, std::int64_t tile_row, const Visit& visit) {
  for (std::int32_t p = layout.part.row_ptr[tile_row]; p < layout.part.row_ptr[tile_row + 1]; ++p) {
    visit(layout.part.col_idx[p], bitmap_rows(layout.bitmap(layout.part_bitmap[p])));
  }
}

std::vector<std::int32_t> offsets_of(const std::vector<std::int32_t>& counts) {
  std::vector<std::int32_t> offsets(counts.size() + 1);
  std::int64_t total = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    total += counts[r];
    if (total > std::numeric_limits<std::int32_t>::max()) {
      throw GraphError(
          fmt::format("mask: more pairs are seen than the {} that a list of keys holds",
                      std::numeric_limits<std::int32_t>::max()));
    }
    offsets[r + 1] = static_cast<std::int32_t>(total);
  }
  return offsets;
}

// Rows of a band take the keys of its tiles from left to right.
void list_keys(const MaskLayout& layout, std::int64_t tile_row, KeyRows& keys) {
  const TileRow band = band_of(layout, tile_row);
  std::array<std::int32_t, kTile> next{};
  std::copy_n(keys.row_ptr.begin() + band.begin, band.rows, next.begin());
  std::int32_t p = layout.part.row_ptr[tile_row];
  for (const std::int32_t col : layout.load.row(tile_row)) {
    const bool is_part = p < layout.part.row_ptr[tile_row + 1] && layout.part.col_idx[p] == col;
    std::array<std::uint64_t, kTile> rows{};
    if (is_part) {
      rows = bitmap_rows(layout.bitmap(layout.part_bitmap[p++]));
    } else {
      rows.fill(low_bits(keys_of_tile(layout, col)));
    }
    for (std::int64_t i = 0; i < band.rows; ++i) {
      for (std::uint64_t word = rows[i]; word != 0; word &= word - 1) {
        keys.col_idx[next[i]++] = static_cast<std::int32_t>(col * kTile + std::countr_zero(word));
      }
    }
  }
}

}  // namespace

bool RowSpans::are_intervals() const {
  for (std::size_t r = 0; r < count.size(); ++r) {
    if (end[r] - first[r] != count[r]) {
      return false;
    }
  }
  return true;
}

RowSpans row_spans(const MaskLayout& layout) {
  const std::int64_t rows = query_rows(layout);
  RowSpans spans{.first = std::vector<std::int32_t>(rows),
                 .end = std::vector<std::int32_t>(rows),
                 .count = std::vector<std::int32_t>(rows)};
  base::parallel_for(layout.row_count(), [&](std::int64_t tile_row) {
    const TileRow band = band_of(layout, tile_row);
    span_full_tiles(layout, tile_row, band, spans);
    for_each_part_tile(layout, tile_row, [&](std::int64_t col, const auto& bits) {
      span_part_tile(col, bits, band, spans);
    });
  });
  return spans;
}

std::optional<Band> band(const MaskLayout& layout) {
  const std::optional<IntervalRows> rows = interval_rows(layout);
  if (!rows) {
    return std::nullopt;
  }
  const std::int64_t queries = layout.extent.q_len;
  const std::int64_t keys = layout.extent.kv_len;
  Band band{.first = -queries, .end = keys};
  const std::int64_t count = std::ssize(rows->first);
  for (std::int64_t r = 0; r < count; ++r) {
    if (rows->first[r] < rows->end[r]) {
      band.first = rows->first[r] > 0 ? rows->first[r] - r % queries : band.first;
      band.end = rows->end[r] < keys ? rows->end[r] - r % queries : band.end;
    }
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t first = std::max<std::int64_t>(r % queries + band.first, 0);
    const std::int64_t end = std::min(r % queries + band.end, keys);
    const bool is_empty = rows->first[r] == rows->end[r];
    if (is_empty ? first < end : first != rows->first[r] || end != rows->end[r]) {
      return std::nullopt;
    }
  }
  return band;
}

std::optional<IntervalRows> interval_rows(const MaskLayout& layout) {
  RowSpans spans = row_spans(layout);
  if (!spans.are_intervals()) {
    return std::nullopt;
  }
  return IntervalRows{.first = std::move(spans.first), .end = std::move(spans.end)};
}

KeyRows key_rows(const MaskLayout& layout) {
  KeyRows keys{.row_ptr = offsets_of(row_spans(layout).count), .col_idx = {}};
  keys.col_idx.resize(keys.row_ptr.back());
  base::parallel_for(layout.row_count(),
                     [&](std::int64_t tile_row) { list_keys(layout, tile_row, keys); });
  return keys;
}

}  // namespace stof::mask
