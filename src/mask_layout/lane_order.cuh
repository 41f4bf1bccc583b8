// The bits of a tile by rows, and in the order in which lanes read them.
#pragma once

#include <cstdint>

#include "mask_layout/list_work.cuh"

namespace stof::mask_layout {

inline constexpr int kLaneWords = 128;  // of a lane-ordered bitmap

// Of a bitmap by inner tiles.
__device__ inline std::uint64_t row_of_bitmap(const std::uint64_t* bitmap, int row) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(bitmap) + row;
  std::uint64_t bits = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    bits |= std::uint64_t{bytes[i * mask::kTile]} << (8 * i);
  }
  return bits;
}

// The lowest two bits of each byte, side by side four bits apart.
__device__ inline std::uint32_t gathered_pairs(std::uint64_t word) {
  word &= 0x0303030303030303;
  word = (word | word >> 4) & 0x0033003300330033;
  word = (word | word >> 8) & 0x0000333300003333;
  return static_cast<std::uint32_t>(word | word >> 16);
}

// As mask::lane_ordered_bitmap, from 64 rows, by a warp. L2 lets go of the words first, which so
// many others are read beside.
__device__ inline void write_lane_order(const std::uint64_t* rows, std::uint32_t* words) {
  const int lane = lane_of_thread();
#pragma unroll
  for (int warp = 0; warp < kLaneWords / kWarp; ++warp) {
    const std::uint64_t upper = rows[16 * warp + lane / 4] >> (lane % 4 * 2);
    const std::uint64_t lower = rows[16 * warp + lane / 4 + 8] >> (lane % 4 * 2);
    __stcs(words + warp * kWarp + lane, gathered_pairs(upper) | gathered_pairs(lower) << 2);
  }
}

}  // namespace stof::mask_layout
