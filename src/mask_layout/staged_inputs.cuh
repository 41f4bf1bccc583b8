// Inputs that a block reads before it evaluates its tiles, so that it reads memory in long pieces:
// bytes of a tile by a warp, columns of a tile row by the block; lengths and offsets once a row.
#pragma once

#include <algorithm>

#include "mask_layout/layout.hpp"
#include "mask_layout/list_work.cuh"
#include "mask_layout/row_bits.cuh"
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

  // Four threads share a row, of which they ask for many columns before they look at one.
  __device__ void read(const Part& input, const Grid& grid, const TileStretch& stretch,
                       std::int32_t* status) const {
    constexpr unsigned kThreadsOfRow = 4;  // as many as columns of a piece
    constexpr unsigned kAtOnce = 4;        // pieces, and as many behind them
    const unsigned own = threadIdx.x % kThreadsOfRow;
    const auto* columns = static_cast<const std::int32_t*>(input.data);
    const auto shift = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(columns) / 4 % 4);
    const auto* pieces = reinterpret_cast<const int4*>(columns - shift);
    for (unsigned row = threadIdx.x / kThreadsOfRow; row < kTile;
         row += blockDim.x / kThreadsOfRow) {
      const std::int64_t query = stretch.place.query + row;
      if (query >= grid.q_len) {
        return;
      }
      const std::int32_t first = input.row_ptr[query];
      const std::int32_t last = input.row_ptr[query + 1];
      bool is_valid = first >= 0 && first <= last && last <= input.columns;
      is_valid = is_valid && (query != 0 || first == 0);
      if (is_valid && first < last) {
        // Whole pieces, and the columns at both ends, of which some are looked at twice.
        const auto begin = static_cast<unsigned>(first);
        const auto end = static_cast<unsigned>(last);
        const std::int32_t head = columns[std::min(begin + own, end - 1)];
        const std::int32_t tail = columns[std::max(begin + own, end - 1) - own];
        RowOfColumns bits(words + row * row_words, grid, stretch);
        const unsigned end_piece = (end + shift) / 4;
        unsigned piece = (begin + shift + 3) / 4 + own;
        const auto load = [&](int4(&keys)[kAtOnce], unsigned from) {
#pragma unroll
          for (unsigned n = 0; n < kAtOnce; ++n) {
            keys[n] = pieces[std::min(from + n * kThreadsOfRow, end_piece - 1)];
          }
        };
        if (piece < end_piece) {
          int4 keys[kAtOnce];
          load(keys, piece);
#pragma unroll 1
          for (; piece < end_piece; piece += kThreadsOfRow * kAtOnce) {
            int4 next[kAtOnce];
            load(next, piece + kThreadsOfRow * kAtOnce);
#pragma unroll
            for (unsigned n = 0; n < kAtOnce; ++n) {
              bits.add(keys[n].x);
              bits.add(keys[n].y);
              bits.add(keys[n].z);
              bits.add(keys[n].w);
              keys[n] = next[n];
            }
          }
        }
        bits.add(head);
        bits.add(tail);
        is_valid = bits.finish();
      }
      if (!is_valid) {
        atomicOr(status, kInvalidData);
      }
    }
  }

 private:
  // Bits of one word are put together as long as columns fall into it.
  class RowOfColumns {
   public:
    __device__ RowOfColumns(std::uint64_t* words, const Grid& grid, const TileStretch& stretch)
        : words_(reinterpret_cast<unsigned*>(words)),
          first_key_(static_cast<unsigned>(stretch.place.key)),
          keys_(static_cast<unsigned>(stretch.count * kTile)),
          kv_len_(static_cast<unsigned>(grid.kv_len)) {}

    __device__ void add(std::int32_t key) {
      most_ = std::max(most_, static_cast<unsigned>(key));
      const unsigned at = static_cast<unsigned>(key) - first_key_;
      if (at < keys_) {
        if (at / 32 != word_) {
          write();
          word_ = at / 32;
          bits_ = 0;
        }
        bits_ |= 1U << at % 32;
      }
    }

    // Whether all were in range.
    __device__ bool finish() {
      write();
      return most_ < kv_len_;
    }

   private:
    __device__ void write() const {
      if (bits_ != 0) {
        atomicOr(words_ + word_, bits_);
      }
    }

    unsigned* words_;
    unsigned first_key_;
    unsigned keys_;
    unsigned kv_len_;
    unsigned word_ = 0;
    unsigned bits_ = 0;
    unsigned most_ = 0;
  };
};

// The keys that lengths and offsets let the rows of a tile see, in shared memory: neighbours.
struct Spans {
  std::int32_t begin[kTile];
  std::int32_t end[kTile];  // 0 behind the last query

  __device__ std::uint64_t at(int row, std::int64_t key) const {
    return first_bits(end[row] - key) & ~first_bits(begin[row] - key);
  }
};

// What spans of neighbouring rows have in common.
struct SpanLimits {
  std::int32_t least_begin = 0x7FFFFFFF;
  std::int32_t most_begin = 0;
  std::int32_t least_end = 0x7FFFFFFF;
  std::int32_t most_end = 0;

  __device__ void add(std::int32_t begin, std::int32_t end) {
    least_begin = std::min(least_begin, __reduce_min_sync(kFullWarp, begin));
    most_begin = std::max(most_begin, __reduce_max_sync(kFullWarp, begin));
    least_end = std::min(least_end, __reduce_min_sync(kFullWarp, end));
    most_end = std::max(most_end, __reduce_max_sync(kFullWarp, end));
  }
  __device__ Truth truth(Range keys) const {
    return most_begin <= keys.low && least_end > keys.high   ? kAlways
           : least_begin > keys.high || most_end <= keys.low ? kNever
                                                             : kUnknown;
  }
};

// By a warp.
__device__ inline SpanLimits read_spans(const MaskView& mask, const Grid& grid,
                                        const TilePlace& place, Spans& spans) {
  SpanLimits limits;
#pragma unroll 1
  for (int row = lane_of_thread(); row < kTile; row += kWarp) {
    const bool exists = place.query + row < grid.q_len;
    const std::int64_t query = exists ? place.query + row : grid.q_len - 1;
    std::int32_t begin = 0;
    auto end = static_cast<std::int32_t>(grid.kv_len);
#pragma unroll 1
    for (int i = 0; i < mask.input_count; ++i) {
      const Part& input = mask.inputs[i];
      const auto* values = static_cast<const std::int32_t*>(input.data);
      if (input.kind == PartKind::KeyLengths) {
        end = std::min(end, values[place.batch]);
      } else if (input.kind == PartKind::Documents) {
        const int document = document_of(input, query);
        const bool is_one = document > 0 && document < input.columns;
        begin = is_one ? std::max(begin, values[document - 1]) : begin;
        end = is_one ? std::min(end, values[document]) : 0;
      }
    }
    spans.begin[row] = begin;
    spans.end[row] = exists ? end : 0;
    limits.add(begin, end);
  }
  return limits;
}

// The code of a tile that was worked out ahead, and the words of a bitmap.
__device__ inline std::int32_t code_ahead(const Part& tiles, const TilePlace& place) {
  const std::int64_t plane =
      (tiles.batch == 1 ? 0 : place.batch) * tiles.heads + (tiles.heads == 1 ? 0 : place.head);
  return tiles
      .row_ptr[(plane * tiles.rows + place.query / kTile) * tiles.columns + place.key / kTile];
}
__device__ inline const std::uint64_t* bitmap_ahead(const Part& tiles, std::int32_t code) {
  return static_cast<const std::uint64_t*>(tiles.data) + std::int64_t{code} * mask::kTileWords;
}

// Bit i for byte i of 16.
__device__ inline unsigned nonzero_bytes(uint4 bytes) {
  const auto word = [](unsigned low, unsigned high) {
    return std::uint64_t{low} | std::uint64_t{high} << 32;
  };
  return nonzero_bytes(word(bytes.x, bytes.y)) | nonzero_bytes(word(bytes.z, bytes.w)) << 8;
}

// Leaves in the rows what of them a tile of bytes lets see too, by a warp: four lanes share a row.
__device__ inline void mask_by_bytes(const Part& input, const Grid& grid, const TilePlace& place,
                                     std::uint64_t (&rows)[kTile]) {
  constexpr int kPieceKeys = 16;
  constexpr int kRounds = 8;
  constexpr int kRows = kTile / kRounds;
  const int lane = lane_of_thread();
  const bool is_aligned = input.columns % kPieceKeys == 0 &&
                          reinterpret_cast<std::uintptr_t>(input.data) % kPieceKeys == 0;
  const Point first = point_of(place, lane / 4, lane % 4 * kPieceKeys);
  auto* quarters = reinterpret_cast<std::uint16_t*>(rows) + lane;
  const auto keep = [&](int i, unsigned bits) {
    quarters[kWarp * i] &= static_cast<std::uint16_t>(bits);
  };
  if (is_aligned) {
    const auto* bytes = static_cast<const std::uint8_t*>(input.data) +
                        data_row(input, first, first.query) * input.columns + first.key;
    uint4 pieces[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const bool exists = first.query + kRows * i < grid.q_len && first.key < grid.kv_len;
      pieces[i] = exists ? __ldg(reinterpret_cast<const uint4*>(bytes + kRows * i * input.columns))
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
      low.query += kRows * i;
      Point high = low;
      high.key += kLanes;
      const bool exists = low.query < grid.q_len;
      keep(i, exists ? dense_bytes(input, low) | dense_bytes(input, high) << kLanes : 0);
    }
  }
  __syncwarp();
}

}  // namespace stof::mask_layout
