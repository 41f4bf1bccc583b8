// Pairs of open tiles, eight keys a thread at a time. A bitmap is found again through its hash, and
// compared word by word, so that equal ones are one and others are not, whatever they hash to.
#include <algorithm>

#include "cuda/check.hpp"
#include "mask/attention_tiles.hpp"
#include "mask_layout/existing_pairs.cuh"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/list_work.cuh"
#include "mask_layout/row_bits.cuh"
#include "mask_layout/stages.hpp"
#include "mask_layout/tile_bits.cuh"

namespace stof::mask_layout {

namespace {

constexpr std::size_t kSharedBytes = 48 << 10;  // of slots, so that blocks share a multiprocessor
constexpr int kMostThreads = 256;
constexpr int kDrawThreads = 128;
constexpr int kDrawBlocks = 10;  // of a multiprocessor, as fast as 12
constexpr int kDrawTiles = 4;    // of a warp

struct Target {
  std::int32_t* classes;
  std::uint8_t* strips;
  LayoutCounts* counts;
  BitmapPool pool;
};

__device__ int lane() {
  return lane_of_thread();
}

// Of both words of every lane of a warp: products by odd numbers, multiples of one another from
// lane to lane, so that like words in several lanes do not cancel; folded, so that all bits of a
// word reach the upper half. Words are all zeros and ones where masks consist of blocks.
__device__ std::uint32_t hash_of_warp(std::uint64_t low, std::uint64_t high) {
  const auto odd = 2 * static_cast<std::uint64_t>(lane()) + 1;
  std::uint64_t hash = (low ^ low >> 29) * (expr::kMixFirstFactor * odd) +
                       (high ^ high >> 29) * (expr::kMixSecondFactor * odd);
  hash = (hash ^ hash >> 32) * expr::kMixStep;
  return __reduce_xor_sync(kFullWarp, static_cast<std::uint32_t>(hash >> 32));
}

// Who sees what a lane writes behind it sees what all lanes of the warp have written before, and
// all lanes see what was written before what one has read.
__device__ void fence_of_warp() {
  __syncwarp();
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  __syncwarp();
}

// The table entry of the bitmap in the slot, by a warp.
__device__ std::int64_t entry_of(const BitmapPool& pool, std::int32_t slot, std::uint64_t low,
                                 std::uint64_t high) {
  const std::int64_t mask = pool.table_size - 1;
  auto at = static_cast<std::int64_t>(hash_of_warp(low, high)) & mask;
  while (true) {
    std::int32_t owner = 0;
    if (lane() == 0) {
      owner = atomicCAS(&pool.table[at].owner, -1, slot);
    }
    owner = __shfl_sync(kFullWarp, owner, 0);
    if (owner == -1) {
      return at;
    }
    fence_of_warp();  // what the owner wrote before it came into the table
    const std::uint64_t* words = pool.words + std::int64_t{owner} * mask::kTileWords + lane();
    const bool is_equal = __ldcg(words) == low && __ldcg(words + kWarp) == high;
    if (__all_sync(kFullWarp, is_equal)) {
      return at;
    }
    at = (at + 1) & mask;
  }
}

// What each 16 rows of a bitmap see, by a warp: of lane i, words i and i + 32.
__device__ std::uint8_t strips_of(const Grid& grid, const TilePlace& place, std::uint64_t low,
                                  std::uint64_t high) {
  const std::int64_t rows = grid.q_len - place.query;
  const std::int64_t keys = grid.kv_len - place.key;
  std::uint64_t hidden = ~(low & high);
  if (rows < kTile || keys < kTile) {
    const std::int64_t rows_here = rows - lane() % 8 * 8;
    const std::int64_t keys_here = keys - lane() / 8 * 8;
    hidden = (existing_pairs(rows_here, keys_here) & ~low) |
             (existing_pairs(rows_here, keys_here - kTile / 2) & ~high);
  }
  const unsigned seeing_words = __ballot_sync(kFullWarp, (low | high) != 0);
  const unsigned hiding_words = __ballot_sync(kFullWarp, hidden != 0);
  // A lane for each bit.
  const unsigned words = (lane() < 4 ? seeing_words : hiding_words) & 0x03030303U << lane() % 4 * 2;
  return static_cast<std::uint8_t>(__ballot_sync(kFullWarp, lane() < 8 && words != 0));
}

// A warp gives the tile its class and, if there is room, its bitmap a slot.
__device__ void keep_bitmap(const Target& target, const Grid& grid, const std::uint64_t* bitmap,
                            std::int32_t tile, const TilePlace& place) {
  const BitmapPool& pool = target.pool;
  std::int32_t slot = 0;
  if (lane() == 0) {
    slot = atomicAdd(&target.counts->part_tiles, 1);
  }
  slot = __shfl_sync(kFullWarp, slot, 0);
  if (slot >= pool.capacity) {
    if (lane() == 0) {
      atomicOr(&target.counts->status, kPartTilesOverflow);
    }
    return;
  }
  const std::uint64_t low = bitmap[lane()];
  const std::uint64_t high = bitmap[lane() + kWarp];
  std::uint64_t* words = pool.words + std::int64_t{slot} * mask::kTileWords + lane();
  __stcg(words, low);
  __stcg(words + kWarp, high);
  fence_of_warp();
  const std::int64_t entry = entry_of(pool, slot, low, high);
  const std::uint8_t strips = strips_of(grid, place, low, high);
  if (lane() == 0) {
    target.strips[tile] = strips;
    atomicMin(&pool.table[entry].first, static_cast<unsigned>(tile));
    target.classes[tile] = static_cast<std::int32_t>(entry);
  }
}

// A warp gives the tile the class that its bits say.
__device__ void keep_tile(const Target& target, const Grid& grid, const std::uint64_t* bitmap,
                          std::int32_t tile, const TilePlace& place, Findings found) {
  if (found.is_any_seen && found.is_any_hidden) {
    keep_bitmap(target, grid, bitmap, tile, place);
  } else if (lane() == 0) {
    target.classes[tile] = found.is_any_seen ? mask::kAllSeen : mask::kNoneSeen;
  }
}

// Whether tiles are evaluated beside the kernel that draws others, which has waited for what is
// ahead of both. It has not made sure that all multiprocessors see it: classes are read from L2,
// and masks with inputs, of which kernels ahead may have made bits, wait as ever.
__device__ bool is_beside_draws(const MaskView& mask) {
  return mask.drawn_part >= 0 && mask.input_count == 0;
}
__device__ void start_evaluation(const MaskView& mask) {
  if (!is_beside_draws(mask)) {
    await_previous();
  }
}
__device__ void end_evaluation(const MaskView& mask) {
  if (is_beside_draws(mask)) {
    let_next_start();
    wait_for_previous();
  }
}

// Tile i belongs to block i % gridDim.x, so that neighbours do not wait for one another.
__global__ void __launch_bounds__(kMostThreads)
    evaluate(const __grid_constant__ MaskView mask, Grid grid, Target target) {
  extern __shared__ std::int64_t slot_memory[];
  __shared__ ProgramStore store;
  __shared__ std::uint64_t bitmaps[2][mask::kTileWords];
  __shared__ std::int32_t open[kMostThreads];
  __shared__ std::int32_t open_count;
  const Program program = stored(mask, store);
  start_evaluation(mask);
  const auto warps = static_cast<int>(blockDim.x) / kWarp;
  const auto warp = static_cast<int>(threadIdx.x) / kWarp;
  const Slots slots = {slot_memory, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  int number = 0;  // of the tiles that the block has evaluated
  const std::int64_t stride = gridDim.x;
  for (std::int64_t begin = blockIdx.x; begin < grid.tile_count(); begin += stride * blockDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) {
      open_count = 0;
    }
    __syncthreads();
    const std::int64_t own = begin + stride * threadIdx.x;
    if (own < grid.tile_count() && __ldcg(target.classes + own) == kOpen) {
      open[atomicAdd(&open_count, 1)] = static_cast<std::int32_t>(own);
    }
    __syncthreads();
    const int count = open_count;
    for (int i = 0; i < count; ++i, ++number) {
      const std::int32_t tile = open[i];
      // Two take turns: while a warp keeps one bitmap the others work on the next.
      std::uint64_t* bitmap = bitmaps[number % 2];
      const TilePlace place(grid, tile);
      const Findings found = evaluate_tile(program, grid, place, bitmap, slots);
      if (warp != number % warps) {
        continue;
      }
      keep_tile(target, grid, bitmap, tile, place, found);
    }
  }
  end_evaluation(mask);
}

// A warp finds out the rows of the tile, two a lane, with the bits that a function has for each,
// and keeps what they are.
template <typename Function>
__device__ void keep_rows(const Target& target, const Grid& grid, std::int32_t tile,
                          const TilePlace& place, std::uint64_t* bitmap, Function bits_of) {
  std::uint64_t seen = 0;
  std::uint64_t hidden = 0;
#pragma unroll 1
  for (int row = lane(); row < kTile; row += kWarp) {
    const Point point = point_of(place, row, 0);
    std::uint64_t bits = 0;
    if (point.query < grid.q_len) {
      bits = bits_of(point);
      hidden |= first_bits(grid.kv_len - point.key) & ~bits;
    }
    seen |= bits;
    auto* bytes = reinterpret_cast<std::uint8_t*>(bitmap) + row;
#pragma unroll
    for (int i = 0; i < kTile / kLanes; ++i) {
      bytes[i * kTile] = static_cast<std::uint8_t>(bits >> (i * kLanes));
    }
  }
  __syncwarp();
  keep_tile(target, grid, bitmap, tile, place,
            {.is_any_seen = __any_sync(kFullWarp, seen != 0) != 0,
             .is_any_hidden = __any_sync(kFullWarp, hidden != 0) != 0});
  __syncwarp();
}

// For masks that go by rows. Tile i belongs to warp i % warps.
__global__ void __launch_bounds__(kMostThreads)
    evaluate_rows(const __grid_constant__ MaskView mask, Grid grid, Target target,
                  std::int64_t warps) {
  extern __shared__ std::int64_t slot_memory[];
  __shared__ ProgramStore store;
  __shared__ std::uint64_t bitmaps[kMostThreads / kWarp][mask::kTileWords];
  const Program program = stored(mask, store);
  start_evaluation(mask);
  __syncthreads();
  const auto warp = static_cast<int>(threadIdx.x) / kWarp;
  std::uint64_t* bitmap = bitmaps[warp];
  const Slots slots = {slot_memory + warp * slot_words(mask, kWarp), lane(), kWarp};
  const std::int64_t first =
      static_cast<std::int64_t>(warp) * gridDim.x + static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t tiles = first < warps ? grid.tile_count() : 0;
  for (std::int64_t begin = first; begin < tiles; begin += warps * kWarp) {
    const std::int64_t own = begin + warps * lane();
    const bool is_open = own < tiles && __ldcg(target.classes + own) == kOpen;
    unsigned open = __ballot_sync(kFullWarp, is_open);
    for (; open != 0; open &= open - 1) {
      const auto tile =
          static_cast<std::int32_t>(begin + warps * (__ffs(static_cast<int>(open)) - 1));
      keep_rows(target, grid, tile, TilePlace(grid, tile), bitmap, [&](const Point& point) {
        prepare_row(program, grid, point, slots);
        return row_bits(program, grid, point, slots);
      });
    }
  }
  end_evaluation(mask);
}

// Of tiles that see what is drawn, a warp has neighbours. The units of logic are what bounds it:
// what comes ahead of the draws of a tile, or behind, is in their way.
__global__ void __launch_bounds__(kDrawThreads, kDrawBlocks)
    draw(const __grid_constant__ MaskView mask, Grid grid, Target target) {
  __shared__ std::uint64_t bitmaps[kDrawThreads / kWarp][mask::kTileWords];
  await_previous_beside_next();
  const auto cols = static_cast<std::int32_t>(grid.tile_cols);
  const std::int32_t stretches = (cols + kDrawTiles - 1) / kDrawTiles;
  const auto number = static_cast<std::int32_t>(first_warp());
  const std::int32_t tile_row = number / stretches;
  const std::int32_t col = number % stretches * kDrawTiles;
  if (tile_row >= grid.row_count()) {
    return;
  }
  const std::int32_t first = tile_row * cols + col;
  const bool exists = lane() < std::min(int{kDrawTiles}, cols - col);
  unsigned drawn = __ballot_sync(kFullWarp, exists && target.classes[first + lane()] == kDrawn);
  if (drawn == 0) {
    return;
  }
  const TilePlace first_place(grid, tile_row, col);
  const std::int64_t* numbers = mask.row_numbers + first_place.first_row_of_plane(grid);
  const auto number_of = [&](int row) {
    return numbers[std::min(first_place.query + row, grid.q_len - 1)];
  };
  const Word low_number = number_of(lane());
  const Word high_number = number_of(lane() + kWarp);
  for (; drawn != 0; drawn &= drawn - 1) {
    const int i = __ffs(static_cast<int>(drawn)) - 1;
    TilePlace place = first_place;
    place.key += i * kTile;
    keep_rows(target, grid, first + i, place, bitmaps[threadIdx.x / kWarp],
              [&](const Point& point) {
                const bool is_low = point.query < place.query + kWarp;
                return first_bits(grid.kv_len - point.key) &
                       kept_keys({is_low ? low_number : high_number, 0}, {point.key, 1},
                                 mask.drawn_limit);
              });
  }
}

// The largest prime up to a number of at least 2, so that tiles of a row, column or diagonal fall
// into many blocks.
std::int64_t prime_up_to(std::int64_t number) {
  const auto is_prime = [](std::int64_t candidate) {
    for (std::int64_t divisor = 2; divisor * divisor <= candidate; ++divisor) {
      if (candidate % divisor == 0) {
        return false;
      }
    }
    return true;
  };
  while (!is_prime(number)) {
    --number;
  }
  return number;
}

// As many as run at once, since each block takes its share of the tiles.
template <typename Kernel>
std::int64_t blocks_at_once(Kernel* kernel, int threads, std::size_t shared_bytes) {
  int device = 0;
  int multiprocessors = 0;
  int blocks_each = 0;
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  STOF_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, kernel, threads, shared_bytes));
  return std::int64_t{multiprocessors} * blocks_each;
}

void add_evaluation(const MaskView& mask, const Grid& grid, const Target& target,
                    cuda::Launches& launches) {
  const std::int64_t tiles = grid.tile_count();
  const int unit = mask.goes_by_rows ? kWarp : kMostThreads;  // threads with slots in common
  const auto bytes_of = [&](int threads) {
    return sizeof(Word) * static_cast<std::size_t>(slot_words(mask, std::min(unit, threads)) *
                                                   (threads / std::min(unit, threads)));
  };
  int threads = kMostThreads;
  while (threads > kWarp && bytes_of(threads) > kSharedBytes) {
    threads /= 2;
  }
  const auto config_of = [&](std::int64_t blocks) {
    return behind({.grid = static_cast<unsigned>(blocks),
                   .block = static_cast<unsigned>(threads),
                   .dynamic_shared_bytes = bytes_of(threads)});
  };
  if (mask.goes_by_rows) {
    cuda::allow_all_shared_memory(reinterpret_cast<const void*>(evaluate_rows));
    const std::int64_t block_warps = threads / kWarp;
    const std::int64_t most = blocks_at_once(evaluate_rows, threads, bytes_of(threads));
    const std::int64_t warps =
        tiles <= most * block_warps ? tiles : prime_up_to(most * block_warps);
    launches.add(evaluate_rows, config_of(std::min(most, warps)), mask, grid, target, warps);
    return;
  }
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(evaluate));
  const std::int64_t most = blocks_at_once(evaluate, threads, bytes_of(threads));
  launches.add(evaluate, config_of(tiles <= most ? tiles : prime_up_to(most)), mask, grid, target);
}

void add_draws(const MaskView& mask, const Grid& grid, const Target& target,
               cuda::Launches& launches) {
  constexpr std::int64_t kWarps = kDrawThreads / kWarp;
  const std::int64_t stretches = (grid.tile_cols + kDrawTiles - 1) / kDrawTiles;
  const std::int64_t blocks = (grid.row_count() * stretches + kWarps - 1) / kWarps;
  launches.add(draw, behind({.grid = static_cast<unsigned>(blocks), .block = kDrawThreads}), mask,
               grid, target);
}

}  // namespace

void evaluate_tiles(const MaskView& mask, const Layout& layout, const TileClasses& classes,
                    const BitmapPool& pool, cuda::Launches& launches) {
  const Target target = {
      .classes = classes.codes, .strips = classes.strips, .counts = layout.counts, .pool = pool};
  if (mask.drawn_part >= 0) {
    add_draws(mask, layout.grid, target, launches);
  }
  add_evaluation(mask, layout.grid, target, launches);
}

}  // namespace stof::mask_layout
