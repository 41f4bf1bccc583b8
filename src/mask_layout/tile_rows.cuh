// Lists of tile rows, each by a warp.
#pragma once

#include "mask_layout/list_work.cuh"

namespace stof::mask_layout {

// Classes of neighbouring tiles of a row, from the column on; those behind its end see nothing.
struct Classes {
  std::int32_t values[kColumnsOfLane];
  std::int32_t owners[kColumnsOfLane];  // of bitmaps that are first used here; else -1

  __device__ Classes(const ListWork& work, std::int64_t row, std::int64_t col) {
#pragma unroll
    for (int i = 0; i < kColumnsOfLane; ++i) {
      values[i] = col + i < work.grid.tile_cols
                      ? work.classes.codes[row * work.grid.tile_cols + col + i]
                      : mask::kNoneSeen;
    }
#pragma unroll
    for (int i = 0; i < kColumnsOfLane; ++i) {
      const BitmapEntry entry = values[i] >= 0 ? work.pool.table[values[i]] : BitmapEntry();
      const bool is_first = entry.first == row * work.grid.tile_cols + col + i;
      owners[i] = is_first ? entry.owner : -1;
    }
  }
};

// Three counts of at most kColumnsOfWarp each, in one word.
struct Tally {
  std::uint32_t word = 0;

  static constexpr int kBits = 10;

  __device__ void add(bool is_full, bool is_part, bool is_first) {
    word += unsigned{is_full} | unsigned{is_part} << kBits | unsigned{is_first} << 2 * kBits;
  }
  __device__ std::int32_t full() const { return static_cast<std::int32_t>(word & 1023); }
  __device__ std::int32_t part() const { return static_cast<std::int32_t>(word >> kBits & 1023); }
  __device__ std::int32_t first() const { return static_cast<std::int32_t>(word >> 2 * kBits); }
};

__device__ inline Tally tally_of(const Classes& classes) {
  Tally tally;
#pragma unroll
  for (int i = 0; i < kColumnsOfLane; ++i) {
    const std::int32_t code = classes.values[i];
    tally.add(code == mask::kAllSeen, code >= 0, classes.owners[i] >= 0);
  }
  return tally;
}

// Leaves the counts of a row where row_ptr will be.
__device__ inline void count_row(const ListWork& work, std::int64_t row) {
  std::int32_t full = 0;
  std::int32_t part = 0;
  std::int32_t first = 0;
  const std::int64_t cols = is_broken(work) ? 0 : work.grid.tile_cols;
  for (std::int64_t begin = 0; begin < cols; begin += kColumnsOfWarp) {
    const std::int64_t col = begin + lane_of_thread() * kColumnsOfLane;
    const Tally tally = tally_of(Classes(work, row, col));
    full += tally.full();
    part += tally.part();
    first += tally.first();
  }
  full = sum_of_warp(full);
  part = sum_of_warp(part);
  first = sum_of_warp(first);
  if (lane_of_thread() == 0) {
    work.full.row_ptr[row + 1] = full;
    work.part.row_ptr[row + 1] = part;
    work.load.row_ptr[row + 1] = full + part;
    work.pool.numbers[row + 1] = first;
    atomicMax(&work.counts->longest_tile_row, full + part);
  }
}

// Numbers bitmaps on the way; part_bitmap is left with table entries.
__device__ inline void fill_row(const ListWork& work, std::int64_t row) {
  std::int32_t full = work.full.row_ptr[row];
  std::int32_t part = work.part.row_ptr[row];
  std::int32_t number = work.pool.numbers[row];
  const std::int64_t cols = is_broken(work) ? 0 : work.grid.tile_cols;
  for (std::int64_t begin = 0; begin < cols; begin += kColumnsOfWarp) {
    const std::int64_t first_col = begin + lane_of_thread() * kColumnsOfLane;
    const Classes classes(work, row, first_col);
    const Tally own = tally_of(classes);
    const Tally up_to{sum_up_to_lane(own.word)};
    const Tally total{__shfl_sync(kFullWarp, up_to.word, kWarp - 1)};
    std::int32_t full_at = full + up_to.full() - own.full();
    std::int32_t part_at = part + up_to.part() - own.part();
    std::int32_t number_at = number + up_to.first() - own.first();
#pragma unroll
    for (int i = 0; i < kColumnsOfLane; ++i) {
      const std::int32_t code = classes.values[i];
      if (code == mask::kNoneSeen) {
        continue;
      }
      const auto col = static_cast<std::int32_t>(first_col + i);
      work.load.col_idx[full_at + part_at] = col;
      if (code == mask::kAllSeen) {
        work.full.col_idx[full_at++] = col;
        continue;
      }
      work.part.col_idx[part_at] = col;
      work.part_bitmap[part_at++] = code;
      if (classes.owners[i] >= 0) {
        work.pool.leader[number_at] = classes.owners[i];
        work.pool.number[code] = number_at++;
      }
    }
    full += total.full();
    part += total.part();
    number += total.first();
  }
}

// tile_codes and part_bitmap, by all threads.
__device__ inline void number_tiles(const ListWork& work) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const bool nothing = is_broken(work);
  for (std::int64_t tile = first; tile < work.grid.tile_count(); tile += step) {
    work.codes[tile] = nothing ? mask::kNoneSeen : final_code(work, work.classes.codes[tile]);
  }
  const std::int32_t parts = work.part.row_ptr[work.grid.row_count()];
  for (std::int64_t p = first; p < parts; p += step) {
    work.part_bitmap[p] = final_code(work, work.part_bitmap[p]);
  }
}

}  // namespace stof::mask_layout
