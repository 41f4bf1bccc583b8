// What lists are made of, and which part of it a warp does.
#pragma once

#include <cstdint>

#include "mask/attention_tiles.hpp"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xFFFFFFFF;
inline constexpr int kTileSizes = 6;      // values of tile_q that there are
inline constexpr int kMostParts = 4;      // 64 rows of a query tile
inline constexpr int kColumnsOfLane = 4;  // neighbours, that it reads at once
inline constexpr int kColumnsOfWarp = kWarp * kColumnsOfLane;

struct QueryTiles {
  AttentionTiles lists;
  std::int32_t* lengths = nullptr;  // [count]
  std::int64_t count = 0;           // query tiles of all planes
  bool is_sorted_here = false;      // else by a kernel of its own
};

struct ListWork {
  Grid grid;
  TileRows full;
  TileRows part;
  TileRows load;
  const std::int32_t* classes = nullptr;
  std::int32_t* codes = nullptr;
  std::int32_t* part_bitmap = nullptr;
  std::uint64_t* bitmaps = nullptr;
  std::uint32_t* lane_bitmaps = nullptr;
  LayoutCounts* counts = nullptr;
  LayoutReport* report = nullptr;
  BitmapPool pool;
  QueryTiles query_tiles[kTileSizes];
  int tile_sizes = 0;
};

__device__ inline int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % kWarp;
}

// Warps of all blocks, that share rows among them.
__device__ inline std::int64_t first_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
}
__device__ inline std::int64_t warp_count() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x / kWarp;
}

// The sum over the warp, in all lanes.
__device__ inline std::int32_t sum_of_warp(std::int32_t value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, distance);
  }
  return value;
}

// The sum over this lane and those below.
__device__ inline std::uint32_t sum_up_to_lane(std::uint32_t value) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const std::uint32_t below = __shfl_up_sync(kFullWarp, value, distance);
    value += lane_of_thread() >= distance ? below : 0;
  }
  return value;
}

}  // namespace stof::mask_layout
