// Sums over lists that one block gets through.
#pragma once

#include <cstdint>

namespace stof::mask_layout {

inline constexpr int kScanThreads = 1024;  // the most

// Numbers that a thread scans at once, and what they come to with those before them.
struct BlockScan {
  static constexpr int kItems = 4;

  std::int32_t of_warps[32];

  // Turns the items of each thread into sums over all items up to each; returns the sum of all.
  __device__ std::int32_t sum_up(std::int32_t (&items)[kItems]) {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const auto warp = static_cast<int>(threadIdx.x) / 32;
    for (int i = 1; i < kItems; ++i) {
      items[i] += items[i - 1];
    }
    const std::int32_t up_to_lane = sum_up_lanes(items[kItems - 1], lane);
    __syncthreads();
    if (lane == 31) {
      of_warps[warp] = up_to_lane;
    }
    __syncthreads();
    const bool is_warp = lane < static_cast<int>(blockDim.x) / 32;
    const std::int32_t up_to_warp = sum_up_lanes(is_warp ? of_warps[lane] : 0, lane);
    const std::int32_t up_to_me = __shfl_sync(0xFFFFFFFF, up_to_warp, (warp + 31) % 32);
    const std::int32_t before = (warp == 0 ? 0 : up_to_me) + up_to_lane - items[kItems - 1];
    for (std::int32_t& item : items) {
      item += before;
    }
    return __shfl_sync(0xFFFFFFFF, up_to_warp, 31);
  }

 private:
  static __device__ std::int32_t sum_up_lanes(std::int32_t value, int lane) {
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t below = __shfl_up_sync(0xFFFFFFFF, value, distance);
      value += lane >= distance ? below : 0;
    }
    return value;
  }
};

// sums[i] becomes sums[0] + … + sums[i] for i up to `count` - 1, by a block of whole warps; returns
// the last.
__device__ inline std::int32_t sum_up(std::int32_t* sums, std::int64_t count) {
  constexpr int kItems = BlockScan::kItems;
  __shared__ BlockScan scan;
  std::int32_t before = 0;
  for (std::int64_t begin = 0; begin < count; begin += blockDim.x * kItems) {
    const std::int64_t first = begin + threadIdx.x * kItems;
    std::int32_t items[kItems];
    for (int i = 0; i < kItems; ++i) {
      items[i] = first + i < count ? sums[first + i] : 0;
    }
    const std::int32_t total = scan.sum_up(items);
    for (int i = 0; i < kItems; ++i) {
      if (first + i < count) {
        sums[first + i] = before + items[i];
      }
    }
    before += total;
  }
  return before;
}

}  // namespace stof::mask_layout
