// Kernel tiles from the codes of the 64 x 64 tiles: a block lists one query tile.
#include "mask/attention_tiles.hpp"

#include <algorithm>

#include "mask_layout/scan.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 128;
constexpr int kMaxParts = 4;
constexpr std::int64_t kTile = mask::kTile;

struct Lists {
  Grid grid;
  const std::int32_t* codes;
  const std::uint64_t* bitmaps;
  AttentionTiles tiles;
};

struct QueryTile {
  std::int64_t plane;
  std::int64_t first_query;

  __device__ QueryTile(const Lists& lists, std::int64_t r)
      : plane(r / lists.tiles.q_tiles), first_query(r % lists.tiles.q_tiles * lists.tiles.tile_q) {}
};

// The bits of inner tile word of which the pairs exist, `rows` and `columns` from its corner.
__device__ std::uint64_t existing_pairs(std::int64_t rows, std::int64_t columns) {
  const auto count = [](std::int64_t n) {
    return static_cast<unsigned>(std::min(std::max(n, std::int64_t{0}), std::int64_t{8}));
  };
  const std::uint64_t row = (1U << count(columns)) - 1;
  const std::uint64_t all = row * 0x0101010101010101;
  return count(rows) == 8 ? all : all & ((std::uint64_t{1} << 8 * count(rows)) - 1);
}

// What the 16 or 32 rows of the query tile see of a part tile: all, nothing, or what its bits say.
__device__ std::int32_t code_of_rows(const Lists& lists, std::int32_t code, std::int64_t query,
                                     std::int64_t col) {
  const std::uint64_t* bitmap = lists.bitmaps + code * mask::kTileWords;
  const auto first = static_cast<int>(query % kTile / 8);
  const auto inner_rows = static_cast<int>(lists.tiles.tile_q / 8);
  bool is_any_seen = false;
  bool is_any_hidden = false;
  for (int word = 0; word < 8 * inner_rows; ++word) {
    const int inner_row = word % inner_rows;
    const int inner_col = word / inner_rows;
    const std::uint64_t seen = bitmap[8 * inner_col + first + inner_row];
    const std::uint64_t existing = existing_pairs(lists.grid.q_len - query - 8 * inner_row,
                                                  lists.grid.kv_len - col * kTile - 8 * inner_col);
    is_any_seen = is_any_seen || seen != 0;
    is_any_hidden = is_any_hidden || (existing & ~seen) != 0;
  }
  return !is_any_seen ? mask::kNoneSeen : is_any_hidden ? code : mask::kAllSeen;
}

struct Codes {
  std::int32_t parts[kMaxParts];
  bool is_active;
};

__device__ Codes codes_of(const Lists& lists, const QueryTile& tile, std::int64_t col) {
  Codes codes{};
  const auto parts = static_cast<int>(lists.tiles.parts());
#pragma unroll
  for (int s = 0; s < kMaxParts; ++s) {
    const std::int64_t query = tile.first_query + s * kTile;
    const std::int64_t row = tile.plane * lists.grid.tile_rows + query / kTile;
    std::int32_t code = mask::kNoneSeen;
    if (s < parts && query < lists.grid.q_len && col < lists.grid.tile_cols) {
      code = lists.codes[row * lists.grid.tile_cols + col];
    }
    if (code >= 0 && lists.tiles.tile_q < kTile) {
      code = code_of_rows(lists, code, query, col);
    }
    codes.parts[s] = code;
    codes.is_active = codes.is_active || code != mask::kNoneSeen;
  }
  return codes;
}

__global__ void __launch_bounds__(kThreads) count_tiles(Lists lists, std::int32_t* lengths) {
  const QueryTile tile(lists, blockIdx.x);
  std::int32_t count = 0;
  for (std::int64_t begin = 0; begin < lists.grid.tile_cols; begin += kThreads) {
    count += __syncthreads_count(codes_of(lists, tile, begin + threadIdx.x).is_active);
  }
  if (threadIdx.x == 0) {
    lists.tiles.row_ptr[blockIdx.x + std::int64_t{1}] = count;
    lengths[blockIdx.x] = count;
  }
}

__global__ void __launch_bounds__(kScanThreads)
    sum_up_tiles(std::int32_t* row_ptr, std::int64_t count) {
  sum_up(row_ptr + 1, count);
  if (threadIdx.x == 0) {
    row_ptr[0] = 0;
  }
}

__global__ void __launch_bounds__(kThreads) fill_tiles(Lists lists) {
  using Scan = cub::BlockScan<std::int32_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  const QueryTile tile(lists, blockIdx.x);
  std::int64_t entry = lists.tiles.row_ptr[blockIdx.x];
  const std::int64_t parts = lists.tiles.parts();
  for (std::int64_t begin = 0; begin < lists.grid.tile_cols; begin += kThreads) {
    const std::int64_t col = begin + threadIdx.x;
    const Codes codes = codes_of(lists, tile, col);
    std::int32_t before = 0;
    std::int32_t total = 0;
    Scan(storage).ExclusiveSum(static_cast<std::int32_t>(codes.is_active), before, total);
    if (codes.is_active) {
      lists.tiles.tile_col[entry + before] = static_cast<std::int32_t>(col);
#pragma unroll
      for (int s = 0; s < kMaxParts; ++s) {
        if (s < parts) {
          lists.tiles.tile_bitmap[(entry + before) * parts + s] = codes.parts[s];
        }
      }
    }
    entry += total;
    __syncthreads();
  }
}

}  // namespace

void derive_attention_tiles(const Layout& layout, const AttentionTiles& tiles,
                            const SortSpace& space, cuda::Launches& launches) {
  const Lists lists = {
      .grid = layout.grid, .codes = layout.tile_codes, .bitmaps = layout.bitmaps, .tiles = tiles};
  const std::int64_t count = layout.grid.planes() * tiles.q_tiles;
  const cuda::LaunchConfig block_a_tile = {.grid = static_cast<unsigned>(count), .block = kThreads};
  launches.add(count_tiles, block_a_tile, lists, space.lengths);
  launches.add(sum_up_tiles, {.grid = 1, .block = kScanThreads}, tiles.row_ptr, count);
  launches.add(fill_tiles, block_a_tile, lists);
  order_longest_first(space.lengths, count, layout.grid.tile_cols, space, tiles.order, launches);
}

}  // namespace stof::mask_layout
