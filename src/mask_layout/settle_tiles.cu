#include <algorithm>

#include "mask/attention_tiles.hpp"
#include "mask_layout/interpreter.cuh"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/settle.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 128;
constexpr int kTile = static_cast<int>(mask::kTile);
constexpr int kNumberedTileRows = kThreads / kTile;  // of a block
constexpr int kSlotThreads = kTile / kLanes;         // whose slots suffice for a word a row

// What the rows of a block's tile rows draw with, a thread each.
__device__ void number_rows(const Program& program, const Grid& grid, int block, Word* memory) {
  const MaskView& mask = program.mask;
  const int thread = static_cast<int>(threadIdx.x) % kTile;
  const int group = static_cast<int>(threadIdx.x) / kTile;
  const int tile_row = block * kNumberedTileRows + group;
  if (tile_row >= grid.row_count()) {
    return;
  }
  const TilePlace place(grid, tile_row, 0);
  const Point point = {
      .batch = place.batch, .head = place.head, .query = place.query + thread, .key = 0};
  if (point.query >= grid.q_len) {
    return;
  }
  const Slots slots = {memory + group * slot_words(mask, kSlotThreads), thread, kSlotThreads};
  const Part& part = program.parts[mask.drawn_part];
  if (part.first_step != part.first_key_step) {
    Interpreter<1>(program, grid, point, slots).run(part.first_step, part.first_key_step);
  }
  const Step draw = load_step(program.steps + part.first_key_step);
  const int seed = draw.operands[draw.operands[0] == kKeyOperand ? 1 : 0];
  mask.row_numbers[place.first_row_of_plane(grid) + point.query] =
      seed < kPrevious ? *slots.of_row(mask, seed, point.query)
                       : scalar_at(static_cast<Scalar>(seed - kScalar), grid, point);
}

unsigned blocks_of(const Grid& grid) {
  return static_cast<unsigned>((grid.tile_count() + kThreads - 1) / kThreads);
}
unsigned numbering_blocks(const MaskView& mask, const Grid& grid) {
  return mask.drawn_part < 0 ? 0
                             : static_cast<unsigned>((grid.row_count() + kNumberedTileRows - 1) /
                                                     kNumberedTileRows);
}

// The first kernel of a build: what others count in starts here. Blocks have tiles, and those
// behind them rows.
__global__ void __launch_bounds__(kThreads)
    settle(const __grid_constant__ MaskView mask, Grid grid, std::int32_t* classes,
           LayoutCounts* counts, BitmapPool pool, int tile_blocks) {
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
  const int block = static_cast<int>(blockIdx.x);
  if (block >= tile_blocks) {
    number_rows(program, grid, block - tile_blocks, reinterpret_cast<Word*>(ranges));
  } else if (first < grid.tile_count()) {
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

}  // namespace

void settle_tiles(const MaskView& mask, const Layout& layout, std::int32_t* classes,
                  const BitmapPool& pool, cuda::Launches& launches) {
  const unsigned tile_blocks = blocks_of(layout.grid);
  const unsigned row_blocks = numbering_blocks(mask, layout.grid);
  const std::int64_t row_words =
      row_blocks == 0 ? 0 : kNumberedTileRows * slot_words(mask, kSlotThreads);
  const std::size_t shared_bytes =
      sizeof(Word) *
      static_cast<std::size_t>(std::max(region_slot_words(mask, kThreads), row_words));
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(settle));
  launches.add(
      settle,
      {.grid = tile_blocks + row_blocks, .block = kThreads, .dynamic_shared_bytes = shared_bytes},
      mask, layout.grid, classes, layout.counts, pool, static_cast<int>(tile_blocks));
}

void count_settled_tiles(const Layout& layout, const std::int32_t* classes,
                         cuda::Launches& launches) {
  constexpr unsigned kMostBlocks = 1024;
  launches.add(count_settled,
               behind({.grid = std::min(blocks_of(layout.grid), kMostBlocks), .block = kThreads}),
               layout.grid, classes, layout.counts);
}

}  // namespace stof::mask_layout
