#include "mask/attention_tiles.hpp"
#include "mask_layout/region_truth.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kTile = mask::kTile;

__device__ Region region_of(const Grid& grid, std::int64_t tile) {
  const std::int64_t row = tile / grid.tile_cols;
  const std::int64_t plane = row / grid.tile_rows;
  const std::int64_t q = row % grid.tile_rows * kTile;
  const std::int64_t k = tile % grid.tile_cols * kTile;
  return {.batch = plane / grid.mask_heads,
          .head = plane % grid.mask_heads,
          .query = {q, std::min(grid.q_len, q + kTile) - 1},
          .key = {k, std::min(grid.kv_len, k + kTile) - 1}};
}

// How many lanes of the warp say so, added to a count; where this lane's place is in it.
__device__ std::int32_t count_in(std::int32_t& count, bool is_one) {
  const unsigned ones = __ballot_sync(0xFFFFFFFF, is_one);
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int32_t before = 0;
  if (lane == 0 && ones != 0) {
    before = atomicAdd(&count, __popc(ones));
  }
  return __shfl_sync(0xFFFFFFFF, before, 0) + __popc(ones & ((1U << lane) - 1));
}

__global__ void __launch_bounds__(kThreads) settle(MaskView mask, Grid grid, std::int32_t* codes,
                                                   std::int32_t* open, LayoutCounts* counts) {
  extern __shared__ Range slots[];
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const bool exists = tile < grid.tile_count();
  const Truth truth = exists ? region_truth(mask, grid, region_of(grid, tile), slots) : kNever;
  count_in(counts->full_tiles, truth == kAlways);
  const std::int32_t at = count_in(counts->open_tiles, truth == kUnknown);
  if (truth == kUnknown) {
    open[at] = static_cast<std::int32_t>(tile);
  }
  if (exists) {
    codes[tile] = truth == kAlways ? mask::kAllSeen : truth == kNever ? mask::kNoneSeen : kOpen;
  }
}

}  // namespace

void settle_tiles(const MaskView& mask, const Layout& layout, const OpenTiles& open,
                  cuda::Launches& launches) {
  const auto blocks = static_cast<unsigned>((layout.grid.tile_count() + kThreads - 1) / kThreads);
  const std::size_t shared_bytes = sizeof(Range) * kThreads * mask.slots;
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(settle));
  launches.add(settle, {.grid = blocks, .block = kThreads, .dynamic_shared_bytes = shared_bytes},
               mask, layout.grid, layout.tile_codes, open.tiles, layout.counts);
}

}  // namespace stof::mask_layout
