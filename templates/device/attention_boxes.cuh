// Which boxes of 64 keys a query tile sees, where each query sees a run of keys that moves along
// with it.
#pragma once

#include "device/attention_band_mask.cuh"

namespace stof {

// Boxes of 64 keys, from the highest one down.
struct KeyBoxes {
  int top, count;

  __device__ __forceinline__ int bottom() const { return top - count + 1; }
};

// Those that a tile of 64 queries sees. One at least, so that there is a product for every tile.
__device__ __forceinline__ KeyBoxes boxes_of_tile(const Band& band, int tile, int q_len) {
  const int first = max(64 * tile + band.first, 0) / 64;
  const int end = min(min(64 * tile + 64, q_len) - 1 + band.end, band.keys);
  const int top = max(end - 1, 0) / 64;
  return {top, top - min(first, top) + 1};
}
// Those of all tiles from `first` to `last`.
__device__ __forceinline__ KeyBoxes boxes_of_tiles(const Band& band, int first, int last,
                                                   int q_len) {
  const KeyBoxes from = boxes_of_tile(band, last, q_len), to = boxes_of_tile(band, first, q_len);
  return {from.top, from.top - to.top + to.count};
}

}  // namespace stof
