// Sums over lists that one block gets through.
#pragma once

#include <cstdint>

#include <cub/block/block_scan.cuh>

namespace stof::mask_layout {

inline constexpr int kScanThreads = 1024;

// sums[i] becomes sums[0] + … + sums[i] for i up to `count` - 1, by a block of kScanThreads.
__device__ inline void sum_up(std::int32_t* sums, std::int64_t count) {
  using Scan = cub::BlockScan<std::int32_t, kScanThreads>;
  __shared__ typename Scan::TempStorage storage;
  constexpr int kItems = 4;
  std::int32_t before = 0;
  for (std::int64_t begin = 0; begin < count; begin += kScanThreads * kItems) {
    const std::int64_t first = begin + threadIdx.x * kItems;
    std::int32_t items[kItems];
    for (int i = 0; i < kItems; ++i) {
      items[i] = first + i < count ? sums[first + i] : 0;
    }
    std::int32_t total = 0;
    Scan(storage).InclusiveSum(items, items, total);
    for (int i = 0; i < kItems; ++i) {
      if (first + i < count) {
        sums[first + i] = before + items[i];
      }
    }
    before += total;
    __syncthreads();
  }
}

}  // namespace stof::mask_layout
