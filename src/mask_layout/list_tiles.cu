// Lists of tile rows and of query tiles: each row is counted, the counts are summed up, and each
// row is written where its sums say; bitmaps get their numbers on the way. Of a small grid one
// cluster of blocks does it all; of others each step is a kernel.
#include <algorithm>

#include "mask_layout/lane_order.cuh"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/query_tiles.cuh"
#include "mask_layout/scan.cuh"
#include "mask_layout/tile_rows.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 64;  // few, so that rows of a small grid are on many multiprocessors
constexpr int kClusterThreads = 512;
constexpr unsigned kClusterBlocks = 8;  // the most that every GPU with clusters takes
constexpr int kBitmapThreads = 128;
constexpr std::int64_t kMaxBlocks = 2112;  // sixteen for each multiprocessor of the largest GPUs
constexpr std::int64_t kSmallGrid = std::int64_t{1} << 15;  // tiles, and rows of lists

// All blocks have come here, and see what the others have written.
__device__ void synchronise_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

// Runs a function for each tile row, or for each query tile of each size.
template <typename Function>
__device__ void for_tile_rows(const ListWork& work, Function function) {
  for (std::int64_t row = first_warp(); row < work.grid.row_count(); row += warp_count()) {
    function(row);
  }
}

// Sizes and rows are handed out in turn, from the last warp on: the first ones have tile rows.
template <typename Function>
__device__ void for_query_tiles(const ListWork& work, Function function) {
  std::int64_t at = warp_count() - 1 - first_warp();
  for (int size = 0; size < work.tile_sizes; ++size) {
    const QueryTiles& tiles = work.query_tiles[size];
    for (; at < tiles.count; at += warp_count()) {
      function(tiles, at);
    }
    at -= tiles.count;
  }
}

__device__ void count(const ListWork& work) {
  if (work.report != nullptr && blockIdx.x == 0 && threadIdx.x == 0 && is_broken(work)) {
    work.report->part_tiles = work.counts->part_tiles;
    work.report->status = work.counts->status;
  }
  for_tile_rows(work, [&](std::int64_t row) { count_row(work, row); });
  for_query_tiles(
      work, [&](const QueryTiles& tiles, std::int64_t r) { count_query_tile(work, tiles, r); });
}

// Each list has a block that sums it up; all blocks look for the places of query tiles.
__device__ void sum_up_and_order(const ListWork& work) {
  const std::int64_t rows = work.grid.row_count();
  const auto sum_up_list = [&](int number, std::int32_t* row_ptr, std::int64_t count,
                               std::int32_t* total) {
    if (number % static_cast<int>(gridDim.x) == static_cast<int>(blockIdx.x)) {
      const std::int32_t sum = sum_up(row_ptr + 1, count);
      if (threadIdx.x == 0) {
        row_ptr[0] = 0;
        if (total != nullptr) {
          *total = sum;
        }
      }
    }
  };
  sum_up_list(0, work.full.row_ptr, rows, &work.counts->full_tiles);
  sum_up_list(1, work.part.row_ptr, rows, &work.counts->part_tiles);
  sum_up_list(2, work.load.row_ptr, rows, nullptr);
  sum_up_list(3, work.pool.numbers, rows, &work.counts->distinct_bitmaps);
  for (int size = 0; size < work.tile_sizes; ++size) {
    const QueryTiles& tiles = work.query_tiles[size];
    sum_up_list(4 + size, tiles.lists.row_ptr, tiles.count, nullptr);
  }
  for_query_tiles(work, [&](const QueryTiles& tiles, std::int64_t r) {
    if (tiles.is_sorted_here) {
      order_query_tile(tiles, r);
    }
  });
}

__device__ void fill(const ListWork& work) {
  for_tile_rows(work, [&](std::int64_t row) { fill_row(work, row); });
}

__global__ void __launch_bounds__(kClusterThreads)
    list_in_cluster(const __grid_constant__ ListWork work) {
  await_previous();
  count(work);
  synchronise_cluster();
  sum_up_and_order(work);
  synchronise_cluster();
  fill(work);
}

__global__ void __launch_bounds__(kThreads) count_lists(const __grid_constant__ ListWork work) {
  await_previous();
  count(work);
}

__global__ void __launch_bounds__(kScanThreads)
    sum_up_lists(const __grid_constant__ ListWork work) {
  await_previous();
  sum_up_and_order(work);
}

__global__ void __launch_bounds__(kThreads) fill_lists(const __grid_constant__ ListWork work) {
  await_previous();
  fill(work);
}

// A warp writes a bitmap in both orders. What is written leaves the L2 first, for the words of the
// pool are in it.
__device__ void write_bitmaps(const ListWork& work) {
  __shared__ std::uint64_t words_of_warps[kBitmapThreads / kWarp][mask::kTileWords];
  std::uint64_t* words = words_of_warps[threadIdx.x / kWarp];
  const int lane = lane_of_thread();
  const std::int32_t count = work.counts->distinct_bitmaps;
  for (std::int64_t n = first_warp(); n < count; n += warp_count()) {
    const std::int64_t slot = work.pool.leader[n];
    const auto* from =
        reinterpret_cast<const ulonglong2*>(work.pool.words + slot * mask::kTileWords);
    const ulonglong2 own = __ldcs(from + lane);
    __stcs(reinterpret_cast<ulonglong2*>(work.bitmaps + n * mask::kTileWords) + lane, own);
    words[2 * lane] = own.x;
    words[2 * lane + 1] = own.y;
    __syncwarp();
    const std::uint64_t low = row_of_bitmap(words, lane);
    const std::uint64_t high = row_of_bitmap(words, lane + kWarp);
    __syncwarp();
    words[lane] = low;
    words[lane + kWarp] = high;
    __syncwarp();
    write_lane_order(words, work.lane_bitmaps + n * kLaneWords);
    __syncwarp();
  }
}

// What is left once all bitmaps have numbers.
__global__ void __launch_bounds__(kBitmapThreads)
    write_numbers(const __grid_constant__ ListWork work) {
  await_previous();
  write_bitmaps(work);
  number_tiles(work);
  for_query_tiles(
      work, [&](const QueryTiles& tiles, std::int64_t r) { fill_query_tile(work, tiles, r); });
}

void add_steps(const ListWork& work, std::int64_t rows, cuda::Launches& launches) {
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::int64_t>(rows / (kThreads / kWarp), 1, kMaxBlocks));
  const cuda::LaunchConfig rows_config = behind({.grid = blocks, .block = kThreads});
  launches.add(count_lists, rows_config, work);
  launches.add(sum_up_lists, behind({.grid = 4 + kTileSizes, .block = kScanThreads}), work);
  launches.add(fill_lists, rows_config, work);
}

}  // namespace

void list_tiles(const Layout& layout, const TileClasses& classes, const BitmapPool& pool,
                const SortSpace& space, LayoutReport* report, cuda::Launches& launches) {
  const ListWork work = list_work(layout, classes, pool, space, report);
  std::int64_t rows = layout.grid.row_count();
  for (int size = 0; size < work.tile_sizes; ++size) {
    rows += work.query_tiles[size].count;
  }
  if (std::max(rows, layout.grid.tile_count()) <= kSmallGrid) {
    const unsigned together = capability() >= 9 ? kClusterBlocks : 1;
    launches.add(list_in_cluster,
                 behind({.grid = together, .block = kClusterThreads, .cluster = together}), work);
  } else {
    add_steps(work, rows, launches);
  }
  const auto blocks =
      static_cast<unsigned>(std::clamp<std::int64_t>(std::max(rows, pool.capacity), 1, kMaxBlocks));
  launches.add(write_numbers, behind({.grid = blocks, .block = kBitmapThreads}), work);
  for (int size = 0; size < work.tile_sizes; ++size) {
    const QueryTiles& tiles = work.query_tiles[size];
    if (!tiles.is_sorted_here) {
      order_longest_first(tiles.lengths, tiles.count, layout.grid.tile_cols, space,
                          tiles.lists.order, launches);
    }
  }
}

}  // namespace stof::mask_layout
