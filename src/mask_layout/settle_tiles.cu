#include "mask/attention_tiles.hpp"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/settle.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 128;

// The first kernel of a build: what others count in starts here.
__global__ void __launch_bounds__(kThreads)
    settle(const __grid_constant__ MaskView mask, Grid grid, std::int32_t* classes,
           LayoutCounts* counts, BitmapPool pool) {
  extern __shared__ Range ranges[];
  __shared__ ProgramStore store;
  const Program program = stored(mask, store);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *counts = LayoutCounts();
  }
  await_previous();
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = first; i < pool.table_size; i += step) {
    pool.table[i] = BitmapEntry();
  }
  if (blockIdx.x == 0) {
    check_inputs(mask, grid, &counts->status);
  }
  if (first < grid.tile_count()) {
    const Region region = region_of(grid, TilePlace(grid, static_cast<std::int32_t>(first)));
    classes[first] = class_of(
        region_truth(program, grid, region, {ranges, static_cast<int>(threadIdx.x), kThreads}));
  }
}

__global__ void __launch_bounds__(kThreads)
    count_settled(Grid grid, const std::int32_t* classes, LayoutCounts* counts) {
  await_previous();
  std::int32_t full = 0;
  std::int32_t open = 0;
  for (std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       tile < grid.tile_count(); tile += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    full += classes[tile] == mask::kAllSeen;
    open += classes[tile] <= kOpen;
  }
  atomicAdd(&counts->full_tiles, full);
  atomicAdd(&counts->open_tiles, open);
}

unsigned blocks_of(const Grid& grid) {
  return static_cast<unsigned>((grid.tile_count() + kThreads - 1) / kThreads);
}

}  // namespace

void settle_tiles(const MaskView& mask, const Layout& layout, std::int32_t* classes,
                  const BitmapPool& pool, cuda::Launches& launches) {
  const std::size_t shared_bytes =
      sizeof(Range) * static_cast<std::size_t>(region_slot_count(mask, kThreads));
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(settle));
  launches.add(
      settle,
      {.grid = blocks_of(layout.grid), .block = kThreads, .dynamic_shared_bytes = shared_bytes},
      mask, layout.grid, classes, layout.counts, pool);
}

void count_settled_tiles(const Layout& layout, const std::int32_t* classes,
                         cuda::Launches& launches) {
  constexpr unsigned kMostBlocks = 1024;
  launches.add(count_settled,
               behind({.grid = std::min(blocks_of(layout.grid), kMostBlocks), .block = kThreads}),
               layout.grid, classes, layout.counts);
}

}  // namespace stof::mask_layout
