// Inputs that a block reads before it evaluates its tiles, so that it reads memory in long pieces:
// bytes of a tile by a warp, columns of a tile row by the block.
#pragma once

#include "mask_layout/key_bits.cuh"
#include "mask_layout/layout.hpp"
#include "mask_layout/tile_bits.cuh"

namespace stof::mask_layout {

// Tiles of one tile row, neighbours, that a block works on.
struct TileStretch {
  TilePlace place;  // of the first
  int first_tile;
  int count;
};

// The bits of the rows of a stretch that the columns of an input say, in shared memory.
struct ColumnBits {
  std::uint64_t* words;  // [64][row_words]
  int row_words;

  static constexpr int row_words_of(int tiles) { return tiles + 1; }  // so that banks differ
  static constexpr std::size_t bytes_of(int row_words) {
    return sizeof(std::uint64_t) * static_cast<std::size_t>(kTile * row_words);
  }

  __device__ std::uint64_t at(int row, int tile) const { return words[row * row_words + tile]; }

  // By all threads, as `read`; they have to synchronise behind each.
  __device__ void clear() const {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * row_words;
         i += static_cast<int>(blockDim.x)) {
      words[i] = 0;
    }
  }

  // Eight threads share a row. Columns come in any order.
  __device__ void read(const Part& input, const Grid& grid, const TileStretch& stretch,
                       std::int32_t* status) const {
    constexpr int kThreadsOfRow = 8;
    constexpr int kAtOnce = 8;
    const auto thread = static_cast<int>(threadIdx.x);
    const auto* columns = static_cast<const std::int32_t*>(input.data);
    const auto first_key = static_cast<std::int32_t>(stretch.place.key);
    for (int row = thread / kThreadsOfRow; row < kTile;
         row += static_cast<int>(blockDim.x) / kThreadsOfRow) {
      const std::int64_t query = stretch.place.query + row;
      if (query >= grid.q_len) {
        return;
      }
      const std::int32_t begin = input.row_ptr[query];
      const std::int32_t end = input.row_ptr[query + 1];
      bool is_valid =
          begin >= 0 && begin <= end && end <= input.columns && (query != 0 || begin == 0);
      const std::int64_t first = std::int64_t{begin} + thread % kThreadsOfRow;
      for (std::int64_t i = first; is_valid && i < end; i += kThreadsOfRow * kAtOnce) {
        std::int32_t keys[kAtOnce];
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          const std::int64_t at = i + n * kThreadsOfRow;
          keys[n] = at < end ? columns[at] : first_key - 1;
          is_valid = is_valid && (at >= end || (keys[n] >= 0 && keys[n] < grid.kv_len));
        }
#pragma unroll
        for (int n = 0; n < kAtOnce; ++n) {
          add(row, keys[n] - first_key, stretch.count);
        }
      }
      if (!is_valid) {
        atomicOr(status, kInvalidData);
      }
    }
  }

 private:
  __device__ void add(int row, std::int32_t key, int tiles) const {
    if (key >= 0 && key < tiles * kTile) {
      auto* row_bits = reinterpret_cast<unsigned*>(words + row * row_words);
      atomicOr(row_bits + key / 32, 1U << (key % 32));
    }
  }
};

// Of tiles that were worked out ahead: the code of the one there, and the words of a bitmap.
__device__ inline std::int32_t code_ahead(const Part& input, const TilePlace& place) {
  return input.row_ptr[tile_ahead(input, place.batch, place.head, place.query, place.key)];
}
__device__ inline const std::uint64_t* bitmap_ahead(const Part& input, std::int32_t code) {
  return static_cast<const std::uint64_t*>(input.data) + std::int64_t{code} * mask::kTileWords;
}

// Bit i for byte i of 16.
__device__ inline unsigned nonzero_bytes(uint4 bytes) {
  const auto word = [](unsigned low, unsigned high) {
    return std::uint64_t{low} | std::uint64_t{high} << 32;
  };
  return nonzero_bytes(word(bytes.x, bytes.y)) | nonzero_bytes(word(bytes.z, bytes.w)) << 8;
}

// Leaves in 32 rows from `first_row` on what of them a tile of bytes lets see too, by a warp: four
// lanes share a row.
__device__ inline void mask_by_bytes(const Part& input, const Grid& grid, const TilePlace& place,
                                     int first_row, int lane, std::uint64_t (&rows)[kTile]) {
  constexpr int kPieceKeys = 16;
  constexpr int kRounds = 4;
  const bool is_aligned = input.columns % kPieceKeys == 0 &&
                          reinterpret_cast<std::uintptr_t>(input.data) % kPieceKeys == 0;
  const Point first = point_of(place, first_row + lane / 4, lane % 4 * kPieceKeys);
  auto* quarters = reinterpret_cast<std::uint16_t*>(rows + first_row) + lane;
  const auto keep = [&](int i, unsigned bits) {
    quarters[32 * i] &= static_cast<std::uint16_t>(bits);
  };
  if (is_aligned) {
    const auto* bytes = static_cast<const std::uint8_t*>(input.data) +
                        data_row(input, first, first.query) * input.columns + first.key;
    uint4 pieces[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const bool exists = first.query + 8 * i < grid.q_len && first.key < grid.kv_len;
      pieces[i] = exists ? __ldg(reinterpret_cast<const uint4*>(bytes + 8 * i * input.columns))
                         : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      keep(i, nonzero_bytes(pieces[i]));
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < kRounds; ++i) {
      Point low = first;
      low.query += 8 * i;
      Point high = low;
      high.key += kLanes;
      const bool exists = low.query < grid.q_len;
      keep(i, exists ? dense_bytes(input, low) | dense_bytes(input, high) << kLanes : 0);
    }
  }
  __syncwarp();
}

}  // namespace stof::mask_layout
