#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "cuda/check.hpp"
#include "cuda/device_array.hpp"
#include "cuda/launches.hpp"
#include "cuda/stream.hpp"
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

inline std::vector<std::int64_t> all_tile_q() {
  return {16, 32, 64, 128, 192, 256};
}

// All that a layout without two-level lists holds: as check_layout, but for how bitmaps are
// numbered.
inline void check_query_tiles(const mask_layout::Layout& layout, const mask::MaskLayout& expected) {
  const auto lanes = mask::lane_ordered_bitmaps(expected);
  for (const mask_layout::AttentionTiles& lists : layout.attention_tiles) {
    INFO("tiles of ", lists.tile_q);
    const mask::AttentionTiles here = fetch_tiles(lists, layout.grid.planes());
    const mask::AttentionTiles there = mask::attention_tiles(expected, lists.tile_q);
    CHECK(here.row_ptr == there.row_ptr);
    CHECK(here.tile_col == there.tile_col);
    CHECK(here.order == there.order);
    REQUIRE(here.tile_bitmap.size() == there.tile_bitmap.size());
    Indices number(lanes.size(), -1);  // of one place that the bitmap has
    for (std::size_t e = 0; e < here.tile_bitmap.size(); ++e) {
      const std::int32_t own = here.tile_bitmap[e];
      if (there.tile_bitmap[e] < 0 || own < 0) {
        REQUIRE(own == there.tile_bitmap[e]);
        continue;
      }
      const auto n = static_cast<std::size_t>(there.tile_bitmap[e]);
      if (number[n] != own) {
        number[n] = own;
        const auto words = fetch(layout.lane_bitmaps + std::int64_t{own} * 128, 128);
        REQUIRE(std::equal(lanes[n].begin(), lanes[n].end(), words.begin()));
      }
    }
  }
}

// Builds it once, with room for so many bitmaps, 0 for one a tile.
inline void check_at_once(const mask_layout::DeviceMask& device, const mask::MaskLayout& expected,
                          std::int64_t max_part_tiles) {
  const mask_layout::RunTimeLayout layout(
      device.grid(), {.tile_q = all_tile_q(), .tile_lists = false}, max_part_tiles);
  const cuda::DeviceArray<std::byte> workspace(layout.workspace_bytes());
  const cuda::Stream stream;
  cuda::Launches launches;
  layout.build(device, workspace.data(), nullptr, launches);
  launches.launch(stream.get());
  stream.synchronize();
  const mask_layout::Layout built = layout.place(workspace.data());
  CHECK(fetch(built.counts, 1).front().status == 0);
  check_query_tiles(built, expected);
}

// The same of the mask and of an expression that reads memory of the run, so that nothing is worked
// out ahead.
inline void check_evaluated_at_once(const Mask& mask, const mask::MaskLayout& expected) {
  HostTensor zero(DType::Int32, {1});
  const Mask all(Capture("zero", DType::Int32, 1)(0) == 0);
  check_at_once(mask_layout::DeviceMask(mask && all, expected.extent, {{"zero", zero.view()}}),
                expected, 0);
}

inline mask_layout::LayoutRequest everything() {
  return {.tile_q = all_tile_q(), .rows = true, .key_rows = true};
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
  check_at_once(device, expected, 0);
  check_at_once(device, expected, std::max(1, built.counts().part_tiles));
  check_evaluated_at_once(mask, expected);
}

}  // namespace stof::test
