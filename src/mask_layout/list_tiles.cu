// Lists in the order of tile rows: each row is counted, the counts are summed up, and each row is
// written where its sums say. Bitmaps get their numbers on the way.
#include <algorithm>

#include "mask/attention_tiles.hpp"
#include "mask_layout/fill.hpp"
#include "mask_layout/scan.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kBitmapThreads = 128;  // the words of a lane-ordered bitmap
constexpr std::int64_t kMaxBlocks = 2048;

// Three counts of at most kThreads each, in one word.
struct Tally {
  std::uint32_t word;

  static constexpr int kBits = 10;

  static __device__ Tally of(bool is_full, bool is_part, bool is_first_use) {
    return {unsigned{is_full} | unsigned{is_part} << kBits | unsigned{is_first_use} << 2 * kBits};
  }
  __device__ std::int32_t full() const { return word & 1023; }
  __device__ std::int32_t part() const { return word >> kBits & 1023; }
  __device__ std::int32_t first_use() const { return word >> 2 * kBits; }
};

struct Lists {
  TileRows full;
  TileRows part;
  TileRows load;
  std::int32_t* codes;
  LayoutCounts* counts;
  BitmapPool pool;
};

__device__ Tally tally_of(const Lists& lists, std::int64_t tile, std::int32_t code) {
  const bool is_part = code >= 0;
  return Tally::of(code == mask::kAllSeen, is_part,
                   is_part && lists.pool.first[lists.pool.entry[code]] == tile);
}

// Where the data or the room does not suffice, nothing is seen, rather than some of it.
__global__ void __launch_bounds__(kThreads) count_rows(Grid grid, Lists lists) {
  const bool is_broken = lists.counts->status != 0;
  const std::int64_t row = blockIdx.x;
  __shared__ std::int32_t totals[3];
  if (threadIdx.x < 3) {
    totals[threadIdx.x] = 0;
  }
  __syncthreads();
  std::int32_t full = 0;
  std::int32_t part = 0;
  std::int32_t first_use = 0;
  for (std::int64_t col = threadIdx.x; col < grid.tile_cols; col += kThreads) {
    const std::int64_t tile = row * grid.tile_cols + col;
    if (is_broken) {
      lists.codes[tile] = mask::kNoneSeen;
      continue;
    }
    const Tally tally = tally_of(lists, tile, lists.codes[tile]);
    full += tally.full();
    part += tally.part();
    first_use += tally.first_use();
  }
  atomicAdd(&totals[0], full);
  atomicAdd(&totals[1], part);
  atomicAdd(&totals[2], first_use);
  __syncthreads();
  if (threadIdx.x == 0) {
    lists.full.row_ptr[row + 1] = totals[0];
    lists.part.row_ptr[row + 1] = totals[1];
    lists.load.row_ptr[row + 1] = totals[0] + totals[1];
    lists.pool.numbers[row + 1] = totals[2];
    atomicMax(&lists.counts->longest_tile_row, totals[0] + totals[1]);
  }
}

// Each block sums up one of the four.
__global__ void __launch_bounds__(kScanThreads) sum_up_rows(Grid grid, Lists lists) {
  std::int32_t* all[] = {lists.full.row_ptr, lists.part.row_ptr, lists.load.row_ptr,
                         lists.pool.numbers};
  std::int32_t* sums = all[blockIdx.x];
  const std::int64_t rows = grid.row_count();
  sum_up(sums + 1, rows);
  if (threadIdx.x != 0) {
    return;
  }
  sums[0] = 0;
  LayoutCounts& counts = *lists.counts;
  std::int32_t* totals[] = {&counts.full_tiles, &counts.part_tiles, nullptr,
                            &counts.distinct_bitmaps};
  if (totals[blockIdx.x] != nullptr) {
    *totals[blockIdx.x] = sums[rows];
  }
}

__global__ void __launch_bounds__(kThreads) fill_rows(Grid grid, Lists lists) {
  using Scan = cub::BlockScan<std::uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const std::int64_t row = blockIdx.x;
  std::int32_t full = lists.full.row_ptr[row];
  std::int32_t part = lists.part.row_ptr[row];
  std::int32_t number = lists.pool.numbers[row];
  for (std::int64_t begin = 0; begin < grid.tile_cols; begin += kThreads) {
    const std::int64_t col = begin + threadIdx.x;
    const std::int64_t tile = row * grid.tile_cols + col;
    const std::int32_t code = col < grid.tile_cols ? lists.codes[tile] : mask::kNoneSeen;
    const Tally tally = tally_of(lists, tile, code);
    Tally before{};
    Tally total{};
    Scan(storage).ExclusiveSum(tally.word, before.word, total.word);
    const std::int32_t full_at = full + before.full();
    const std::int32_t part_at = part + before.part();
    if (tally.full() != 0) {
      lists.full.col_idx[full_at] = static_cast<std::int32_t>(col);
    }
    if (tally.part() != 0) {
      lists.part.col_idx[part_at] = static_cast<std::int32_t>(col);
      lists.pool.part_tile[part_at] = static_cast<std::int32_t>(tile);
    }
    if (tally.full() + tally.part() != 0) {
      lists.load.col_idx[full_at + part_at] = static_cast<std::int32_t>(col);
    }
    if (tally.first_use() != 0) {
      const std::int32_t own = number + before.first_use();
      lists.pool.number[lists.pool.entry[code]] = own;
      lists.pool.leader[own] = code;
    }
    full += total.full();
    part += total.part();
    number += total.first_use();
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads) number_parts(Lists lists, std::int32_t* part_bitmap) {
  const std::int32_t parts = lists.counts->part_tiles;
  for (std::int32_t p = blockIdx.x * kThreads + threadIdx.x; p < parts; p += gridDim.x * kThreads) {
    std::int32_t& code = lists.codes[lists.pool.part_tile[p]];
    const std::int32_t number = lists.pool.number[lists.pool.entry[code]];
    part_bitmap[p] = number;
    code = number;
  }
}

// As mask::lane_ordered_bitmap.
__device__ std::uint32_t lane_word(const std::uint64_t* words, int thread) {
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int shift = lane / 4 * 8 + lane % 4 * 2;
  std::uint32_t result = 0;
  for (int j = 0; j < 8; ++j) {
    const auto upper = static_cast<std::uint32_t>(words[8 * j + 2 * warp] >> shift & 3);
    const auto lower = static_cast<std::uint32_t>(words[8 * j + 2 * warp + 1] >> shift & 3);
    result |= (upper | lower << 2) << (4 * j);
  }
  return result;
}

__global__ void __launch_bounds__(kBitmapThreads)
    write_bitmaps(Lists lists, std::uint64_t* bitmaps, std::uint32_t* lane_bitmaps) {
  const std::int32_t count = lists.counts->distinct_bitmaps;
  for (std::int64_t n = blockIdx.x; n < count; n += gridDim.x) {
    const std::uint64_t* words = lists.pool.words + lists.pool.leader[n] * mask::kTileWords;
    if (threadIdx.x < mask::kTileWords) {
      bitmaps[n * mask::kTileWords + threadIdx.x] = words[threadIdx.x];
    }
    lane_bitmaps[n * kBitmapThreads + threadIdx.x] =
        lane_word(words, static_cast<int>(threadIdx.x));
  }
}

__global__ void write_report(const LayoutCounts* counts, LayoutReport* report) {
  if (counts->status != 0) {
    report->part_tiles = counts->part_tiles;
    report->status = counts->status;
  }
}

}  // namespace

void clear(const BitmapPool& pool, cuda::Launches& launches) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  fill(pool.owner, kNone, sizeof(*pool.owner) * pool.table_size, launches);
  fill(pool.first, kNone, sizeof(*pool.first) * pool.table_size, launches);
}

void report_status(const LayoutCounts* counts, LayoutReport* report, cuda::Launches& launches) {
  launches.add(write_report, {}, counts, report);
}

void list_tiles(const Layout& layout, const BitmapPool& pool, cuda::Launches& launches) {
  const Lists lists = {.full = layout.full,
                       .part = layout.part,
                       .load = layout.load,
                       .codes = layout.tile_codes,
                       .counts = layout.counts,
                       .pool = pool};
  const auto rows = static_cast<unsigned>(layout.grid.row_count());
  const auto blocks = [&](std::int64_t count) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, kMaxBlocks));
  };
  launches.add(count_rows, {.grid = rows, .block = kThreads}, layout.grid, lists);
  launches.add(sum_up_rows, {.grid = 4, .block = kScanThreads}, layout.grid, lists);
  launches.add(fill_rows, {.grid = rows, .block = kThreads}, layout.grid, lists);
  launches.add(number_parts, {.grid = blocks(pool.capacity / kThreads + 1), .block = kThreads},
               lists, layout.part_bitmap);
  launches.add(write_bitmaps, {.grid = blocks(pool.capacity), .block = kBitmapThreads}, lists,
               layout.bitmaps, layout.lane_bitmaps);
}

}  // namespace stof::mask_layout
