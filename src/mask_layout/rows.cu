// Rows of keys: a block takes the 64 query rows of a tile row. To measure them, eight threads share
// each, one an eighth of the tile columns.
#include <algorithm>

#include "mask/attention_tiles.hpp"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/scan.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kTile = static_cast<int>(mask::kTile);
constexpr int kSegments = 8;
constexpr int kWarp = 32;
constexpr int kMeasureThreads = kTile * kSegments;
constexpr int kFillRows = 8;  // of a tile row, that a block fills

struct Lists {
  Grid grid;
  const std::int32_t* codes;
  const std::uint64_t* bitmaps;
  LayoutCounts* counts;
  Rows rows;
};

// A row of the block's tile row.
struct RowPlace {
  std::int64_t first_tile;
  std::int64_t row_index;  // among the query rows
  int row;
  bool exists;

  __device__ RowPlace(const Grid& grid, int row) : row(row) {
    const std::int64_t tile_row = blockIdx.x;
    const std::int64_t query = tile_row % grid.tile_rows * kTile + row;
    first_tile = tile_row * grid.tile_cols;
    row_index = tile_row / grid.tile_rows * grid.q_len + query;
    exists = query < grid.q_len;
  }
};

// 64 keys of the row, the first in the lowest bit.
__device__ std::uint64_t keys_of(const Lists& lists, const RowPlace& place, std::int64_t col) {
  const std::int32_t code = lists.codes[place.first_tile + col];
  if (code == mask::kNoneSeen) {
    return 0;
  }
  if (code == mask::kAllSeen) {
    const std::int64_t keys = lists.grid.kv_len - col * kTile;
    return keys >= kTile ? ~std::uint64_t{0} : (std::uint64_t{1} << keys) - 1;
  }
  // Byte c of the row is byte 64 c + row of the bitmap.
  const auto* bytes =
      reinterpret_cast<const std::uint8_t*>(lists.bitmaps + code * mask::kTileWords) + place.row;
  std::uint64_t keys = 0;
  for (int c = 0; c < 8; ++c) {
    keys |= std::uint64_t{bytes[kTile * c]} << (8 * c);
  }
  return keys;
}

__global__ void __launch_bounds__(kMeasureThreads) measure(Lists lists) {
  __shared__ std::int32_t firsts[kSegments][kTile];
  __shared__ std::int32_t ends[kSegments][kTile];
  __shared__ std::int32_t counts[kSegments][kTile];
  await_previous();
  const RowPlace place(lists.grid, static_cast<int>(threadIdx.x));
  const std::int64_t width = (lists.grid.tile_cols + kSegments - 1) / kSegments;
  const std::int64_t begin_col = width * threadIdx.y;
  const std::int64_t end_col =
      place.exists ? std::min(lists.grid.tile_cols, begin_col + width) : begin_col;
  std::int32_t first = INT32_MAX;
  std::int32_t end = 0;
  std::int32_t count = 0;
  for (std::int64_t col = begin_col; col < end_col; ++col) {
    const std::uint64_t keys = keys_of(lists, place, col);
    if (keys != 0) {
      const auto key = static_cast<std::int32_t>(col * kTile);
      first = std::min(first, key + __ffsll(static_cast<long long>(keys)) - 1);
      end = key + kTile - __clzll(static_cast<long long>(keys));
      count += __popcll(keys);
    }
  }
  firsts[threadIdx.y][threadIdx.x] = first;
  ends[threadIdx.y][threadIdx.x] = end;
  counts[threadIdx.y][threadIdx.x] = count;
  __syncthreads();
  if (threadIdx.y != 0 || !place.exists) {
    return;
  }
  for (int s = 1; s < kSegments; ++s) {
    first = std::min(first, firsts[s][threadIdx.x]);
    end = std::max(end, ends[s][threadIdx.x]);
    count += counts[s][threadIdx.x];
  }
  first = count == 0 ? 0 : first;
  lists.rows.first[place.row_index] = first;
  lists.rows.end[place.row_index] = end;
  lists.rows.count[place.row_index] = count;
  if (count == 0) {
    atomicAdd(&lists.counts->empty_rows, 1);
  } else if (end - first != count) {
    atomicAdd(&lists.counts->broken_rows, 1);
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(&lists.counts->seen_pairs),
            static_cast<unsigned long long>(count));
}

// The lengths of rows summed up, where there is room for all of them.
__global__ void __launch_bounds__(kScanThreads) sum_up_keys(Lists lists, std::int64_t capacity) {
  await_previous();
  const std::int64_t rows = lists.grid.query_rows();
  const bool fits = lists.counts->seen_pairs <= capacity;
  std::int32_t* row_ptr = lists.rows.key_row_ptr;
  for (std::int64_t r = threadIdx.x; r < rows; r += kScanThreads) {
    row_ptr[r + 1] = fits ? lists.rows.count[r] : 0;
  }
  __syncthreads();
  sum_up(row_ptr + 1, rows);
  if (threadIdx.x == 0) {
    row_ptr[0] = 0;
    lists.counts->status |= fits ? 0 : kKeysOverflow;
  }
}

// A warp writes a row, 32 tiles at a time: each lane reads the keys of one, and all write them.
__global__ void __launch_bounds__(kFillRows* kWarp) fill_keys(Lists lists) {
  constexpr unsigned kFullWarp = 0xFFFFFFFF;
  await_previous();
  if ((lists.counts->status & kKeysOverflow) != 0) {
    return;
  }
  const int lane = static_cast<int>(threadIdx.x);
  const RowPlace place(lists.grid,
                       static_cast<int>(blockIdx.y) * kFillRows + static_cast<int>(threadIdx.y));
  if (!place.exists) {
    return;
  }
  std::int64_t at = lists.rows.key_row_ptr[place.row_index];
  for (std::int64_t begin = 0; begin < lists.grid.tile_cols; begin += kWarp) {
    const std::int64_t col = begin + lane;
    const std::uint64_t own =
        col < lists.grid.tile_cols ? keys_of(lists, place, col) : std::uint64_t{0};
    for (unsigned left = __ballot_sync(kFullWarp, own != 0); left != 0; left &= left - 1) {
      const int source = __ffs(static_cast<int>(left)) - 1;
      const std::uint64_t keys = __shfl_sync(kFullWarp, own, source);
      const auto first = static_cast<std::int32_t>((begin + source) * kTile);
      for (int bit = lane; bit < kTile; bit += kWarp) {
        if (keys >> bit & 1) {
          const std::uint64_t before = keys & ((std::uint64_t{1} << bit) - 1);
          lists.rows.key_col[at + __popcll(before)] = first + bit;
        }
      }
      at += __popcll(keys);
    }
  }
}

// As mask::measure takes percentiles; lengths descend here.
__global__ void take_percentiles(const std::int32_t* lengths, std::int64_t rows,
                                 LayoutCounts* counts) {
  await_previous();
  constexpr int kPercentiles[] = {0, 50, 90, 99, 100};
  const std::int64_t at = kPercentiles[threadIdx.x] * (rows - 1) / 100;
  counts->keys_at[threadIdx.x] = lengths[rows - 1 - at];
}

Lists lists_of(const Layout& layout) {
  return {.grid = layout.grid,
          .codes = layout.tile_codes,
          .bitmaps = layout.bitmaps,
          .counts = layout.counts,
          .rows = layout.rows};
}

}  // namespace

void measure_rows(const Layout& layout, std::int64_t capacity, const SortSpace& space,
                  cuda::Launches& launches) {
  const Lists lists = lists_of(layout);
  const std::int64_t rows = layout.grid.query_rows();
  launches.add(measure,
               behind({.grid = static_cast<unsigned>(layout.grid.row_count()),
                       .block = dim3(kTile, kSegments)}),
               lists);
  if (layout.rows.key_row_ptr != nullptr) {
    launches.add(sum_up_keys, behind({.grid = 1, .block = kScanThreads}), lists, capacity);
  }
  order_longest_first(layout.rows.count, rows, layout.grid.kv_len, space, layout.rows.order,
                      launches);
  launches.add(take_percentiles, behind({.grid = 1, .block = 5}), space.sorted_lengths, rows,
               layout.counts);
}

void list_keys(const Layout& layout, cuda::Launches& launches) {
  const auto tile_rows = static_cast<unsigned>(layout.grid.row_count());
  launches.add(
      fill_keys,
      behind({.grid = dim3(tile_rows, kTile / kFillRows), .block = dim3(kWarp, kFillRows)}),
      lists_of(layout));
}

}  // namespace stof::mask_layout
