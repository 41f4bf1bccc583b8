// Attention in which each row sees a run of keys of its own: which keys a query tile needs, and
// which scores stay.
#pragma once

#include "device/attention_band.cuh"

namespace stof {

// The keys that rows see, in memory; first and end of those that see none are 0.
struct IntervalArrays {
  const int* __restrict__ first;
  const int* __restrict__ end;
  int rows;
  int keys_here;  // of the batch element

  // Rows past the end stand for the last one. Keys of one that sees none are as far apart as can
  // be, so that it changes neither the least nor the most of several.
  __device__ __forceinline__ KeySpan keys(int row) const {
    const int at = min(row, rows - 1);
    const KeySpan keys = {__ldg(first + at), min(__ldg(end + at), keys_here)};
    return keys.first < keys.end ? keys : KeySpan{0x7fffffff, 0};
  }
};

// From the first key that any of some rows sees to the last one.
struct SpanOfRows {
  int first = 0x7fffffff, end = 0;

  __device__ __forceinline__ void add(const KeySpan& keys) {
    first = min(first, keys.first);
    end = max(end, keys.end);
  }
  // Over all lanes of a warp.
  __device__ __forceinline__ SpanOfRows of_warp() const {
    return {__reduce_min_sync(0xffffffffu, first), __reduce_max_sync(0xffffffffu, end)};
  }
};

// What a warp knows of its 16 rows, see Band.
struct IntervalRows {
  KeySpan own[2], all;

  __device__ __forceinline__ IntervalRows(const IntervalArrays& arrays, int first_row, int lane)
      : own{arrays.keys(first_row + lane / 4), arrays.keys(first_row + lane / 4 + 8)},
        all{__reduce_max_sync(0xffffffffu, max(own[0].first, own[1].first)),
            __reduce_min_sync(0xffffffffu, min(own[0].end, own[1].end))} {}

  __device__ __forceinline__ KeySpan keys_of_lane(int, int half) const { return own[half]; }
  __device__ __forceinline__ KeySpan keys_of_all(int) const { return all; }
};

// The keys of a query tile of so many groups of 64 rows, by each of its warps, and those of group
// number `group`.
template <int Groups>
struct IntervalKeys {
  SpanOfRows of_tile, of_group;

  __device__ __forceinline__ IntervalKeys(const IntervalArrays& arrays, int first_row, int group,
                                          int lane) {
    KeySpan keys[2 * Groups];
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i)
      keys[i] = arrays.keys(first_row + 32 * i + lane);
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
      of_tile.add(keys[i]);
      if (i / 2 == group)
        of_group.add(keys[i]);
    }
    of_tile = of_tile.of_warp();
    of_group = of_group.of_warp();
  }

  __device__ __forceinline__ BandKeys tile(int tile_k) const {
    const int count = max(of_tile.end - of_tile.first, 0);
    return {of_tile.first, (count + tile_k - 1) / tile_k};
  }
  template <int Step>
  __device__ __forceinline__ GroupKeys group() const {
    const int begin = max(of_group.first - of_tile.first, 0);
    return {begin / Step * Step, of_group.end - of_tile.first};
  }
};

}  // namespace stof
