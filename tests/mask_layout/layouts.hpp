#pragma once

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/check.hpp"
#include "mask/attention_tiles.hpp"
#include "mask/features.hpp"
#include "mask/longest_first.hpp"
#include "mask/rows.hpp"
#include "mask_layout/build.hpp"
#include "mask_layout/fetch.hpp"

// Layouts of the GPU on the host, and whether they are those that the host builds.
namespace stof::test {

using Indices = std::vector<std::int32_t>;

template <typename T>
std::vector<T> fetch(const T* data, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  STOF_CUDA(cudaMemcpy(host.data(), data, sizeof(T) * host.size(), cudaMemcpyDeviceToHost));
  return host;
}

inline mask::AttentionTiles fetch_tiles(const mask_layout::AttentionTiles& tiles,
                                        std::int64_t planes) {
  const std::int64_t rows = planes * tiles.q_tiles;
  mask::AttentionTiles host{.tile_q = tiles.tile_q,
                            .row_ptr = fetch(tiles.row_ptr, rows + 1),
                            .tile_col = {},
                            .tile_bitmap = {},
                            .order = fetch(tiles.order, rows)};
  host.tile_col = fetch(tiles.tile_col, host.row_ptr.back());
  host.tile_bitmap = fetch(tiles.tile_bitmap, host.row_ptr.back() * tiles.parts());
  return host;
}

inline void check_rows(const mask_layout::Layout& layout, const mask::MaskLayout& expected) {
  const std::int64_t rows = layout.grid.query_rows();
  const mask::RowSpans spans = mask::row_spans(expected);
  CHECK(fetch(layout.rows.first, rows) == spans.first);
  CHECK(fetch(layout.rows.end, rows) == spans.end);
  CHECK(fetch(layout.rows.count, rows) == spans.count);
  const mask::KeyRows keys = mask::key_rows(expected);
  CHECK(fetch(layout.rows.order, rows) == mask::longest_first(keys.row_ptr));
  if (layout.rows.key_row_ptr != nullptr) {
    CHECK(fetch(layout.rows.key_row_ptr, rows + 1) == keys.row_ptr);
    CHECK(fetch(layout.rows.key_col, keys.row_ptr.back()) == keys.col_idx);
  }
}

// All that the layout holds, bit for bit.
inline void check_layout(const mask_layout::Layout& layout, const mask::MaskLayout& expected) {
  const mask::MaskLayout host = mask_layout::fetch(layout, expected.extent);
  CHECK(host.full == expected.full);
  CHECK(host.part == expected.part);
  CHECK(host.load == expected.load);
  CHECK(host.part_bitmap == expected.part_bitmap);
  CHECK(host.bitmaps == expected.bitmaps);
  CHECK(host == expected);
  const auto lanes = mask::lane_ordered_bitmaps(expected);
  const auto words = fetch(layout.lane_bitmaps, std::ssize(lanes) * 128);
  for (std::size_t n = 0; n < lanes.size(); ++n) {
    REQUIRE(std::equal(lanes[n].begin(), lanes[n].end(), words.begin() + 128 * n));
  }
  for (const mask_layout::AttentionTiles& tiles : layout.attention_tiles) {
    INFO("tiles of ", tiles.tile_q);
    CHECK(fetch_tiles(tiles, layout.grid.planes()) ==
          mask::attention_tiles(expected, tiles.tile_q));
  }
  if (layout.rows.first != nullptr) {
    check_rows(layout, expected);
  }
}

inline mask_layout::LayoutRequest everything() {
  return {.tile_q = {16, 32, 64, 128, 192, 256}, .rows = true, .key_rows = true};
}

// Builds the layout of the mask here and there.
inline void check_build(const Mask& mask, const mask::Extent& extent) {
  INFO(mask.text().substr(0, 300), " at ", extent.batch, " x ", extent.heads, " x ", extent.q_len,
       " x ", extent.kv_len);
  const mask::MaskLayout expected = mask::build_layout(mask, extent);
  const mask_layout::DeviceMask device(mask, extent);
  const mask_layout::BuiltLayout built = mask_layout::build_layout(device, everything());
  check_layout(built.layout(), expected);
  CHECK(built.features(mask, extent) == mask::measure(mask, expected));
}

}  // namespace stof::test
