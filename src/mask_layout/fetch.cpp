#include "mask_layout/fetch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/check.hpp"

namespace stof::mask_layout {

namespace {

template <typename T>
std::vector<T> fetch_array(const T* data, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  STOF_CUDA(cudaMemcpy(host.data(), data, sizeof(T) * host.size(), cudaMemcpyDeviceToHost));
  return host;
}

mask::TileRows fetch_rows(const TileRows& rows, std::int64_t count) {
  mask::TileRows host{.row_ptr = fetch_array(rows.row_ptr, count + 1), .col_idx = {}};
  host.col_idx = fetch_array(rows.col_idx, host.row_ptr.back());
  return host;
}

}  // namespace

mask::MaskLayout fetch(const Layout& layout, const mask::Extent& extent) {
  const LayoutCounts counts = fetch_array(layout.counts, 1).front();
  const std::int64_t rows = layout.grid.row_count();
  return {.extent = extent,
          .mask_batch = layout.grid.mask_batch,
          .mask_heads = layout.grid.mask_heads,
          .tile_rows = layout.grid.tile_rows,
          .tile_cols = layout.grid.tile_cols,
          .full = fetch_rows(layout.full, rows),
          .part = fetch_rows(layout.part, rows),
          .load = fetch_rows(layout.load, rows),
          .part_bitmap = fetch_array(layout.part_bitmap, counts.part_tiles),
          .bitmaps = fetch_array(layout.bitmaps, counts.distinct_bitmaps * mask::kTileWords)};
}

}  // namespace stof::mask_layout
