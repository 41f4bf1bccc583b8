// Pairs of open tiles, eight keys a thread at a time. A bitmap is found again through its hash, and
// compared word by word, so that equal ones are one and others are not, whatever they hash to.
#include <algorithm>

#include "cuda/check.hpp"
#include "mask/attention_tiles.hpp"
#include "mask_layout/key_bits.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kTile = static_cast<int>(mask::kTile);
constexpr int kPieces = kTile * kTile / kLanes;  // bytes of a bitmap
constexpr std::size_t kSharedBytes = 48 << 10;   // without asking for more
constexpr unsigned kFullWarp = 0xFFFFFFFF;

struct Target {
  std::int32_t* codes;
  const std::int32_t* open;
  LayoutCounts* counts;
  BitmapPool pool;
};

// Of both words of every lane of a warp.
__device__ std::uint64_t hash_of_warp(std::uint64_t low, std::uint64_t high) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x);
  std::uint64_t hash =
      expr::mix(expr::mix(static_cast<std::int64_t>(low) ^ lane) ^ static_cast<std::int64_t>(high));
  for (int distance = 16; distance > 0; distance /= 2) {
    hash ^= __shfl_xor_sync(kFullWarp, hash, distance);
  }
  return hash;
}

// The table entry of the bitmap in the slot, by the first warp.
__device__ std::int64_t entry_of(const BitmapPool& pool, std::int32_t slot, std::uint64_t low,
                                 std::uint64_t high) {
  const std::int64_t mask = pool.table_size - 1;
  auto at = static_cast<std::int64_t>(hash_of_warp(low, high)) & mask;
  while (true) {
    std::int32_t owner = 0;
    if (threadIdx.x == 0) {
      owner = atomicCAS(&pool.owner[at], -1, slot);
    }
    owner = __shfl_sync(kFullWarp, owner, 0);
    if (owner == -1) {
      return at;
    }
    __threadfence();  // what the owner wrote before it came into the table
    const std::uint64_t* words = pool.words + std::int64_t{owner} * mask::kTileWords + threadIdx.x;
    const bool is_equal = __ldcg(words) == low && __ldcg(words + 32) == high;
    if (__all_sync(kFullWarp, is_equal)) {
      return at;
    }
    at = (at + 1) & mask;
  }
}

// The first warp gives the tile its code and, if there is room, its bitmap a slot.
__device__ void keep_bitmap(const Target& target, const std::uint64_t* bitmap, std::int32_t tile) {
  const BitmapPool& pool = target.pool;
  std::int32_t slot = 0;
  if (threadIdx.x == 0) {
    slot = atomicAdd(&target.counts->part_tiles, 1);
  }
  slot = __shfl_sync(kFullWarp, slot, 0);
  if (slot >= pool.capacity) {
    if (threadIdx.x == 0) {
      atomicOr(&target.counts->status, kPartTilesOverflow);
    }
    return;
  }
  const std::uint64_t low = bitmap[threadIdx.x];
  const std::uint64_t high = bitmap[threadIdx.x + 32];
  std::uint64_t* words = pool.words + std::int64_t{slot} * mask::kTileWords + threadIdx.x;
  __stcg(words, low);
  __stcg(words + 32, high);
  __threadfence();
  __syncwarp();
  const std::int64_t entry = entry_of(pool, slot, low, high);
  if (threadIdx.x == 0) {
    pool.entry[slot] = static_cast<std::int32_t>(entry);
    atomicMin(&pool.first[entry], static_cast<unsigned>(tile));
    target.codes[tile] = slot;
  }
}

__global__ void evaluate(MaskView mask, Grid grid, Target target) {
  extern __shared__ std::int64_t slots[];
  __shared__ std::uint64_t bitmap[mask::kTileWords];
  const std::int32_t open_tiles = target.counts->open_tiles;
  for (std::int64_t i = blockIdx.x; i < open_tiles; i += gridDim.x) {
    const std::int32_t tile = target.open[i];
    const std::int64_t row = tile / grid.tile_cols;
    const std::int64_t plane = row / grid.tile_rows;
    const std::int64_t q = row % grid.tile_rows * kTile;
    const std::int64_t k = tile % grid.tile_cols * kTile;
    unsigned seen = 0;
    unsigned hidden = 0;
    for (int piece = threadIdx.x; piece < kPieces; piece += blockDim.x) {
      const Point point = {.batch = plane / grid.mask_heads,
                           .head = plane % grid.mask_heads,
                           .query = q + piece % kTile,
                           .key = k + piece / kTile * kLanes};
      const bool exists = point.query < grid.q_len && point.key < grid.kv_len;
      const unsigned bits = exists ? key_bits(mask, grid, point, slots) : 0;
      seen |= bits;
      hidden |= exists ? run_of_bits(0, grid.kv_len - point.key) & ~bits : 0;
      reinterpret_cast<std::uint8_t*>(bitmap)[piece] = static_cast<std::uint8_t>(bits);
    }
    const bool is_any_seen = __syncthreads_or(seen != 0);
    const bool is_any_hidden = __syncthreads_or(hidden != 0);
    if (is_any_seen && is_any_hidden) {
      if (threadIdx.x < 32) {
        keep_bitmap(target, bitmap, tile);
      }
    } else if (threadIdx.x == 0) {
      target.codes[tile] = is_any_seen ? mask::kAllSeen : mask::kNoneSeen;
    }
    __syncthreads();
  }
}

}  // namespace

void evaluate_tiles(const MaskView& mask, const Layout& layout, const OpenTiles& open,
                    const BitmapPool& pool, cuda::Launches& launches) {
  const auto bytes_of = [&](int threads) {
    return sizeof(std::int64_t) * kLanes * threads * mask.slots;
  };
  int threads = 128;
  while (threads > 32 && bytes_of(threads) > kSharedBytes) {
    threads /= 2;
  }
  cuda::allow_all_shared_memory(reinterpret_cast<const void*>(evaluate));
  // As many blocks as run at once, since each takes its share of the tiles.
  int device = 0;
  int multiprocessors = 0;
  int blocks_each = 0;
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  STOF_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, evaluate, threads,
                                                          bytes_of(threads)));
  const auto blocks = static_cast<unsigned>(
      std::min(layout.grid.tile_count(), std::int64_t{multiprocessors} * blocks_each));
  launches.add(
      evaluate,
      {.grid = blocks,
       .block = static_cast<unsigned>(threads),
       .dynamic_shared_bytes = bytes_of(threads)},
      mask, layout.grid,
      {.codes = layout.tile_codes, .open = open.tiles, .counts = layout.counts, .pool = pool});
}

}  // namespace stof::mask_layout
