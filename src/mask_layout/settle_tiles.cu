#include "mask/attention_tiles.hpp"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/region_truth.cuh"
#include "mask_layout/stages.hpp"
#include "mask_layout/tile_place.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 128;

__device__ Region region_of(const Grid& grid, const TilePlace& place) {
  return {.batch = place.batch,
          .head = place.head,
          .query = {place.query, std::min(grid.q_len, place.query + mask::kTile) - 1},
          .key = {place.key, std::min(grid.kv_len, place.key + mask::kTile) - 1}};
}

__device__ bool is_valid(const Part& input, const Grid& grid, std::int64_t i) {
  const auto* values = static_cast<const std::int32_t*>(input.data);
  if (input.kind == PartKind::KeyLengths) {
    return values[i] >= 0 && values[i] <= grid.kv_len;
  }
  return i == 0 ? values[0] == 0
                : values[i - 1] <= values[i] && values[i] <= std::max(grid.q_len, grid.kv_len);
}

// Lengths and offsets; what is longer is checked where it is read.
__device__ void check_inputs(const MaskView& mask, const Grid& grid, LayoutCounts* counts) {
  for (int n = 0; n < mask.input_count; ++n) {
    const Part& input = mask.inputs[n];
    const std::int64_t values = input.kind == PartKind::KeyLengths  ? grid.mask_batch
                                : input.kind == PartKind::Documents ? input.columns
                                                                    : 0;
    for (std::int64_t i = threadIdx.x; i < values; i += kThreads) {
      if (!is_valid(input, grid, i)) {
        atomicOr(&counts->status, kInvalidData);
      }
    }
  }
}

// The first kernel of a build: what others count in starts here.
__global__ void __launch_bounds__(kThreads)
    settle(const __grid_constant__ MaskView mask, Grid grid, std::int32_t* classes,
           LayoutCounts* counts, BitmapPool pool) {
  extern __shared__ Range slots[];
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
    check_inputs(mask, grid, counts);
  }
  if (first < grid.tile_count()) {
    const Region region = region_of(grid, TilePlace(grid, static_cast<std::int32_t>(first)));
    const Truth truth = region_truth(program, grid, region, slots);
    classes[first] = truth == kAlways ? mask::kAllSeen : truth == kNever ? mask::kNoneSeen : kOpen;
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
    open += classes[tile] == kOpen;
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
  const std::size_t shared_bytes = sizeof(Range) * kThreads * (mask.slots + mask.row_slots);
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
