#include "mask_layout/build.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "cuda/check.hpp"
#include "mask_layout/stages.hpp"
#include "stof/error.hpp"

namespace stof::mask_layout {

namespace {

void* reserve(std::vector<cuda::DeviceArray<std::byte>>& memory, const Carver& needed) {
  return memory.emplace_back(std::max<std::size_t>(needed.size_bytes(), 1)).data();
}

LayoutCounts read(const LayoutCounts* counts, cudaStream_t stream) {
  LayoutCounts host;
  STOF_CUDA(cudaMemcpyAsync(&host, counts, sizeof(host), cudaMemcpyDeviceToHost, stream));
  STOF_CUDA(cudaStreamSynchronize(stream));
  return host;
}

// The memory of the pool may be missing yet.
void settle(const DeviceMask& mask, const Buffers& buffers, cuda::Launches& launches) {
  settle_tiles(mask.view(), buffers.layout, buffers.classes.codes, buffers.pool, launches);
  mask.write_bits(&buffers.layout.counts->status, launches);
}

// All but the keys themselves.
void list(const DeviceMask& mask, const Buffers& buffers, std::int64_t max_keys,
          LayoutReport* report, cuda::Launches& launches) {
  evaluate_tiles(mask.view(), buffers.layout, buffers.classes, buffers.pool, launches);
  list_tiles(buffers.layout, buffers.classes, buffers.pool, buffers.space, report, launches);
  if (buffers.layout.rows.first != nullptr) {
    measure_rows(buffers.layout, max_keys, buffers.space, launches);
  }
}

}  // namespace

mask::MaskFeatures BuiltLayout::features(const Mask& mask, const mask::Extent& extent) const {
  const Grid& grid = buffers_.layout.grid;
  STOF_CHECK(buffers_.layout.rows.first != nullptr) << "no rows";
  mask::MaskFeatures features;
  features.extent = extent;
  features.mask_batch = grid.mask_batch;
  features.mask_heads = grid.mask_heads;
  features.tiles = grid.tile_count();
  features.full_tiles = counts_.full_tiles;
  features.part_tiles = counts_.part_tiles;
  features.distinct_bitmaps = counts_.distinct_bitmaps;
  features.longest_tile_row = counts_.longest_tile_row;
  features.interval_rows = counts_.broken_rows == 0;
  features.mean_keys =
      static_cast<double>(counts_.seen_pairs) / static_cast<double>(grid.query_rows());
  features.density = features.mean_keys / static_cast<double>(grid.kv_len);
  features.min_keys = counts_.keys_at[0];
  features.median_keys = counts_.keys_at[1];
  features.percentile_90_keys = counts_.keys_at[2];
  features.percentile_99_keys = counts_.keys_at[3];
  features.max_keys = counts_.keys_at[4];
  features.empty_rows = counts_.empty_rows;
  return mask::classified(mask, features);
}

BuiltLayout build_layout(const DeviceMask& mask, const LayoutRequest& request,
                         cudaStream_t stream) {
  BuiltLayout built;
  Buffers& buffers = built.buffers_;
  buffers.layout.grid = mask.grid();
  const auto give_memory = [&](const auto& carve) {
    Carver needed;
    carve(needed);
    Carver carver(reserve(built.memory_, needed));
    carve(carver);
  };
  give_memory([&](Carver& carver) { carve_codes(carver, buffers); });
  const auto run = [&](const auto& add_stages) {
    cuda::Launches launches;
    add_stages(launches);
    launches.launch(stream);
  };
  run([&](cuda::Launches& launches) {
    settle(mask, buffers, launches);
    count_settled_tiles(buffers.layout, buffers.classes.codes, launches);
  });
  const LayoutCounts settled = read(buffers.layout.counts, stream);
  if ((settled.status & kInvalidData) != 0) {
    throw GraphError("mask: lengths, offsets or columns on the device are out of range");
  }
  Capacity capacity = {.full_tiles = settled.full_tiles + std::int64_t{settled.open_tiles},
                       .part_tiles = settled.open_tiles,
                       .keys = std::numeric_limits<std::int32_t>::max()};
  give_memory([&](Carver& carver) { carve_lists(carver, buffers, request, capacity); });
  STOF_CUDA(cudaMemsetAsync(buffers.pool.table, 0xFF, sizeof(BitmapEntry) * buffers.pool.table_size,
                            stream));
  run([&](cuda::Launches& launches) { list(mask, buffers, capacity.keys, nullptr, launches); });
  built.counts_ = read(buffers.layout.counts, stream);
  if (request.key_rows) {
    capacity.keys = built.counts_.seen_pairs;
    give_memory([&](Carver& carver) { carve_keys(carver, buffers, capacity); });
    run([&](cuda::Launches& launches) { list_keys(buffers.layout, launches); });
    STOF_CUDA(cudaStreamSynchronize(stream));
  }
  return built;
}

RunTimeLayout::RunTimeLayout(const Grid& grid, LayoutRequest request, std::int64_t max_part_tiles,
                             std::int64_t max_keys)
    : grid_(grid), request_(std::move(request)) {
  STOF_CHECK(request_.tile_lists || !(request_.rows || request_.key_rows)) << "rows of no lists";
  request_.tile_lists = !is_built_at_once(grid, request_);
  const std::int64_t tiles = grid.tile_count();
  capacity_ = {.full_tiles = tiles,
               .part_tiles = max_part_tiles == 0 ? tiles : std::min(tiles, max_part_tiles),
               .keys = max_keys};
  Carver carver;
  carve(carver);
  workspace_bytes_ = carver.size_bytes();
}

bool RunTimeLayout::has_lists() const {
  return !request_.runs || !request_.tile_q.empty() || request_.rows || request_.key_rows;
}

bool RunTimeLayout::has_own_rows() const {
  return request_.runs && !request_.rows && !request_.key_rows;
}

Buffers RunTimeLayout::carve(Carver& carver) const {
  Buffers buffers;
  buffers.layout.grid = grid_;
  if (has_lists() && !request_.tile_lists) {
    carve_at_once(carver, buffers, request_, capacity_);
  } else if (has_lists()) {
    carve_codes(carver, buffers);
    carve_lists(carver, buffers, request_, capacity_);
    carve_keys(carver, buffers, capacity_);
  }
  if (has_own_rows()) {
    carve_runs(carver, buffers);
  }
  return buffers;
}

Layout RunTimeLayout::place(void* workspace) const {
  Carver carver(workspace);
  return carve(carver).layout;
}

void RunTimeLayout::build(const DeviceMask& mask, void* workspace, LayoutReport* report,
                          cuda::Launches& launches) const {
  Carver carver(workspace);
  const Buffers buffers = carve(carver);
  if (has_own_rows()) {
    list_runs(mask.view(), buffers.layout, *request_.runs, report, launches);
  }
  if (!has_lists()) {
    return;
  }
  if (!request_.tile_lists) {
    mask.write_bits(&mask.arrivals()->status, launches);
    build_at_once(mask.staged_view(), buffers.layout, buffers.classes, buffers.at_once,
                  capacity_.part_tiles, mask.arrivals(), report, launches);
    return;
  }
  settle(mask, buffers, launches);
  list(mask, buffers, capacity_.keys, report, launches);
  if (request_.key_rows) {
    list_keys(buffers.layout, launches);
  }
}

}  // namespace stof::mask_layout
