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

// Lists of one tile_q.
struct QueryTiles {
  AttentionTiles lists;
  std::int32_t* lengths = nullptr;  // [count]
  std::int64_t count = 0;           // query tiles of all planes
  bool is_sorted_here = false;      // else by a kernel of its own
};

// Of a layout without two-level lists all that belongs to these is null.
struct ListWork {
  Grid grid;
  TileRows full;
  TileRows part;
  TileRows load;
  TileClasses classes;
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

inline constexpr std::int64_t kMostCompared = 2048;  // query tiles, each with all others

inline ListWork list_work(const Layout& layout, const TileClasses& classes, const BitmapPool& pool,
                          const SortSpace& space, LayoutReport* report) {
  ListWork work;
  work.grid = layout.grid;
  work.full = layout.full;
  work.part = layout.part;
  work.load = layout.load;
  work.classes = classes;
  work.codes = layout.tile_codes;
  work.part_bitmap = layout.part_bitmap;
  work.bitmaps = layout.bitmaps;
  work.lane_bitmaps = layout.lane_bitmaps;
  work.counts = layout.counts;
  work.report = report;
  work.pool = pool;
  std::int32_t* lengths = space.lengths;
  for (const AttentionTiles& lists : layout.attention_tiles) {
    const std::int64_t count = layout.grid.planes() * lists.q_tiles;
    work.query_tiles[work.tile_sizes++] = {.lists = lists,
                                           .lengths = lengths,
                                           .count = count,
                                           .is_sorted_here = count <= kMostCompared};
    lengths = lengths == nullptr ? nullptr : lengths + count;
  }
  return work;
}

// Where the data or the room does not suffice, nothing is seen, rather than some of it.
__device__ inline bool is_broken(const ListWork& work) {
  return work.counts->status != 0;
}

// The code that others read: the number of the bitmap instead of its table entry.
__device__ inline std::int32_t final_code(const ListWork& work, std::int32_t code) {
  return code >= 0 && work.pool.number != nullptr ? work.pool.number[code] : code;
}

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
