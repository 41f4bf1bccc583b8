// Inputs that a block reads before it evaluates its tiles: bytes of a tile by a warp, in long
// pieces; lengths and offsets once a row.
#pragma once

#include <algorithm>

#include "mask_layout/layout.hpp"
#include "mask_layout/list_work.cuh"
#include "mask_layout/row_bits.cuh"
#include "mask_layout/tile_bits.cuh"

namespace stof::mask_layout {

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

// Leaves in the rows what of them words of bits let see too, by a warp.
__device__ inline void mask_by_bits(const Part& input, const Grid& grid, const TilePlace& place,
                                    std::uint64_t (&rows)[kTile]) {
  const int lane = lane_of_thread();
  const auto bits_of = [&](int row) {
    const Point point = point_of(place, row, 0);
    return point.query < grid.q_len ? data_row_bits(input, point) : 0;
  };
  const std::uint64_t low = bits_of(lane);
  const std::uint64_t high = bits_of(lane + kWarp);
  rows[lane] &= low;
  rows[lane + kWarp] &= high;
  __syncwarp();
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
