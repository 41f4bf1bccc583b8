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

// A query tile whose length neighbouring lanes find, as many as give each tile of its size some.
struct MeasuredTile {
  int number;
  int lane;
  int lanes;
  QueryTile tile;

  __device__ MeasuredTile(const Grid& grid, const QueryTiles& tiles)
      : MeasuredTile(grid, tiles, bits_of_lane(static_cast<int>(tiles.count))) {}

  // By its lanes: the entries are the columns that any of its strips sees.
  __device__ int length(const AtOnceWork& work) const {
    const uint4* seeing = work.seeing + first_row * work.stretches;
    const unsigned strips = tile.strips == 0 ? unsigned{kAllStrips} : tile.strips;
    int length = 0;
    for (int stretch = lane; stretch < work.stretches; stretch += lanes) {
      uint4 rows[kMostParts];
#pragma unroll
      for (int row = 0; row < kMostParts; ++row) {
        rows[row] = row < tile.tile_rows ? seeing[row * work.stretches + stretch] : uint4{};
      }
      unsigned active = 0;
#pragma unroll
      for (const uint4& row : rows) {
        active |= ((strips & 1) != 0 ? row.x : 0) | ((strips & 2) != 0 ? row.y : 0) |
                  ((strips & 4) != 0 ? row.z : 0) | ((strips & 8) != 0 ? row.w : 0);
      }
      length += __popc(active);
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      length += __shfl_xor_sync(kFullWarp, length, distance);
    }
    return length;
  }

 private:
  static __device__ int bits_of_lane(int count) {
    return std::min(5, 8 - (kWarp - __clz(count - 1)));
  }
  __device__ MeasuredTile(const Grid& grid, const QueryTiles& tiles, int lane_bits)
      : number(static_cast<int>(threadIdx.x) >> lane_bits),
        lane(static_cast<int>(threadIdx.x) & ((1 << lane_bits) - 1)),
        lanes(1 << lane_bits),
        tile(grid, tiles.lists, std::min(number, static_cast<int>(tiles.count) - 1)),
        first_row(tile.first_tile / tile.cols) {}

  int first_row;  // of tiles
};

// What tiles have come to.
struct Outcome {
  std::int32_t part_tiles;
  std::int32_t status;

  __device__ explicit Outcome(const AtOnceWork& work)
      : part_tiles(work.arrivals->part_tiles), status(work.arrivals->status) {}

  __device__ bool is_empty(const AtOnceWork& work) const {
    return status != 0 || part_tiles > work.bitmaps;
  }

  // By a thread, once its block has read them: the last one leaves them as they were before the
  // build, and says what they were.
  __device__ void report(const AtOnceWork& work) const {
    if (atomicInc(&work.arrivals->blocks, gridDim.x - 1) != gridDim.x - 1) {
      return;
    }
    work.arrivals->part_tiles = 0;
    work.arrivals->status = 0;
    LayoutCounts counts;
    counts.part_tiles = part_tiles;
    counts.status = status | (part_tiles > work.bitmaps ? kPartTilesOverflow : 0);
    *work.lists.counts = counts;
    if (work.lists.report != nullptr && counts.status != 0) {
      work.lists.report->part_tiles = part_tiles;
      work.lists.report->status = counts.status;
    }
  }
};

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
    const int sum = __reduce_add_sync(kFullWarp, other < r ? length : 0);
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
  const MeasuredTile measured(work.lists.grid, tiles);
  await_previous();
  // All that is read is under way before the first of it is needed.
  const Outcome outcome(work);
  const PartCodes codes = codes_of(work.lists.classes, tile, static_cast<int>(threadIdx.x));
  const int length = measured.length(work);
  if (measured.lane == 0 && measured.number < count) {
    lengths[measured.number] = length;
  }
  const bool is_empty = outcome.is_empty(work);
  const QueryTilePlace place(lengths, count, item.number);
  if (threadIdx.x == 0) {
    outcome.report(work);
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
