// Lists of query tiles of a small grid, each by a block, which finds the place of its own from the
// lengths of all.
#include <algorithm>

#include "base/check.hpp"
#include "mask_layout/at_once.cuh"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/query_tiles.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
static_assert(kMostQueryTilesAtOnce <= kThreads);

// Which query tile a block lists.
struct Item {
  int size = 0;
  int number = 0;

  __device__ explicit Item(const ListWork& work) : number(static_cast<int>(blockIdx.x)) {
    for (; number >= work.query_tiles[size].count; ++size) {
      number -= static_cast<int>(work.query_tiles[size].count);
    }
  }
};

// So that all query tiles of a size have some.
__device__ int lanes_of_query_tile(int count) {
  return std::min(int{kWarp}, kThreads >> (kWarp - __clz(count - 1)));
}

// The entries of a query tile, by `lanes` neighbouring lanes.
__device__ int length_by_lanes(const AtOnceWork& work, const QueryTile& tile, int lane, int lanes) {
  const int stretches = (tile.cols + work.stretch_tiles - 1) / work.stretch_tiles;
  const uint4* seeing = work.seeing + tile.first_tile / tile.cols * stretches;
  const unsigned strips = tile.strips == 0 ? unsigned{kAllStrips} : tile.strips;
  int length = 0;
  for (int stretch = lane; stretch < stretches; stretch += lanes) {
    unsigned active = 0;
#pragma unroll
    for (int row = 0; row < kMostParts; ++row) {
      if (row < tile.tile_rows) {
        const uint4 own = seeing[row * stretches + stretch];
        active |= ((strips & 1) != 0 ? own.x : 0) | ((strips & 2) != 0 ? own.y : 0) |
                  ((strips & 4) != 0 ? own.z : 0) | ((strips & 8) != 0 ? own.w : 0);
      }
    }
    length += __popc(active);
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    length += __shfl_xor_sync(kFullWarp, length, distance);
  }
  return length;
}

// Of all query tiles of a size.
__device__ void write_lengths(const AtOnceWork& work, const QueryTiles& tiles,
                              std::int32_t (&lengths)[kMostQueryTilesAtOnce]) {
  const int lanes = lanes_of_query_tile(static_cast<int>(tiles.count));
  const int r = static_cast<int>(threadIdx.x) / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const auto last = static_cast<int>(tiles.count) - 1;
  const QueryTile tile(work.lists.grid, tiles.lists, std::min(r, last));
  const int length = length_by_lanes(work, tile, lane, lanes);
  if (lane == 0 && r <= last) {
    lengths[r] = length;
  }
}

// What tiles have come to. The block that reads it last leaves it as it was before the build, and
// says it.
__device__ std::int32_t read_status(const AtOnceWork& work) {
  Arrivals& arrivals = *work.arrivals;
  const std::int32_t part_tiles = arrivals.part_tiles;
  const std::int32_t status =
      arrivals.status | (part_tiles > work.bitmaps ? kPartTilesOverflow : 0);
  __syncthreads();
  if (threadIdx.x == 0 && atomicInc(&arrivals.blocks, gridDim.x - 1) == gridDim.x - 1) {
    arrivals.part_tiles = 0;
    arrivals.status = 0;
    LayoutCounts counts;
    counts.part_tiles = part_tiles;
    counts.status = status;
    *work.lists.counts = counts;
    if (work.lists.report != nullptr && status != 0) {
      work.lists.report->part_tiles = part_tiles;
      work.lists.report->status = status;
    }
  }
  return status;
}

// Where the entries of a query tile begin, and its place in the order, see order_query_tile.
struct QueryTilePlace {
  int first_entry = 0;
  int in_order = 0;

  // By a block, which synchronises.
  __device__ QueryTilePlace(const std::int32_t* lengths, int count, int r) {
    __shared__ int before;
    const auto other = static_cast<int>(threadIdx.x);
    if (other == 0) {
      before = 0;
    }
    __syncthreads();
    const int own = lengths[r];
    const int length = other < count ? lengths[other] : -1;
    const int sum = sum_of_warp(other < r ? length : 0);
    if (lane_of_thread() == 0 && sum != 0) {
      atomicAdd(&before, sum);
    }
    in_order = __syncthreads_count(length > own || (length == own && other < r));
    first_entry = before;
  }
};

// By the block, a column a thread. `codes` are those of the first columns.
__device__ void write_entries_of(const AtOnceWork& work, const AttentionTiles& lists,
                                 const QueryTile& tile, PartCodes codes, std::int32_t entry) {
  __shared__ std::int32_t active_of_warps[kWarps];
  const auto parts = static_cast<int>(lists.parts());
  const auto thread = static_cast<int>(threadIdx.x);
  const unsigned below = (1U << lane_of_thread()) - 1;
  for (int begin = 0; begin < tile.cols; begin += kThreads) {
    const unsigned active = __ballot_sync(kFullWarp, codes.is_active);
    if (lane_of_thread() == 0) {
      active_of_warps[thread / kWarp] = __popc(active);
    }
    __syncthreads();
    std::int32_t at = entry + __popc(active & below);
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      at += warp < thread / kWarp ? active_of_warps[warp] : 0;
      entry += active_of_warps[warp];
    }
    if (codes.is_active) {
      lists.tile_col[at] = begin + thread;
#pragma unroll
      for (int s = 0; s < kMostParts; ++s) {
        if (s < parts) {
          lists.tile_bitmap[static_cast<std::int64_t>(at) * parts + s] = codes.values[s];
        }
      }
    }
    codes = codes_of(work.lists.classes, tile, begin + kThreads + thread);
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    list_query_tiles(const __grid_constant__ AtOnceWork work) {
  __shared__ std::int32_t lengths[kMostQueryTilesAtOnce];
  const Item item(work.lists);
  const QueryTiles& tiles = work.lists.query_tiles[item.size];
  const AttentionTiles& lists = tiles.lists;
  const auto count = static_cast<int>(tiles.count);
  const QueryTile tile(work.lists.grid, lists, item.number);
  await_previous();
  const PartCodes codes = codes_of(work.lists.classes, tile, static_cast<int>(threadIdx.x));
  write_lengths(work, tiles, lengths);
  const bool is_empty = read_status(work) != 0;
  const QueryTilePlace place(lengths, count, item.number);
  if (threadIdx.x == 0) {
    lists.row_ptr[item.number] = is_empty ? 0 : place.first_entry;
    lists.order[is_empty ? item.number : place.in_order] = item.number;
    if (item.number == count - 1) {
      lists.row_ptr[count] = is_empty ? 0 : place.first_entry + lengths[item.number];
    }
  }
  if (!is_empty) {
    write_entries_of(work, lists, tile, codes, place.first_entry);
  }
}

}  // namespace

void list_at_once(const AtOnceWork& work, cuda::Launches& launches) {
  std::int64_t blocks = 0;
  for (int size = 0; size < work.lists.tile_sizes; ++size) {
    blocks += work.lists.query_tiles[size].count;
  }
  STOF_CHECK(blocks > 0) << "no query tiles";
  launches.add(list_query_tiles, behind({.grid = static_cast<unsigned>(blocks), .block = kThreads}),
               work);
}

}  // namespace stof::mask_layout
