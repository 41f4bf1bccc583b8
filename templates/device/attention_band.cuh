// Attention in which each query sees a run of keys that moves along with it: which keys a tile
// needs, and what lies in shared memory.
#pragma once

#include "device/attention_band_mask.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// Keys of a query tile: from `begin` on, in so many stages. Where the tile's run fits one stage it
// begins there, even ahead of the first key, which is read as zero, unless all keys that there may
// be fit it too.
struct BandKeys {
  int begin, stages;
};
template <bool IsResident>
__device__ __forceinline__ BandKeys keys_of_tile(const Band& band, int first_query, int end_query,
                                                 int tile_k, bool all_fit) {
  const int begin = first_query + band.first;
  if (IsResident)
    return {all_fit ? max(begin, 0) : begin, 1};
  const int first = max(begin, 0);
  const int count = min(end_query - 1 + band.end, band.keys) - first;
  return {first, max(count + tile_k - 1, 0) / tile_k};
}

// Which tile a block takes, counted from the one with the fewest keys, where there are more blocks
// than SMs and an SM holds two. The first blocks go to an SM each, the others to SMs whose first
// block is short, the shorter the longer that is. An H200 gives a second block to every other SM in
// the order of the first ones, and to those in between when these are over.
__device__ __forceinline__ int place_in_pairs(int block, int blocks, int sm_count) {
  const int second = blocks - sm_count;
  if (block >= sm_count)
    return blocks - 1 - block;
  return second + (2 * second > sm_count ? block : block / 2 + block % 2 * ((sm_count + 1) / 2));
}

// Those of 64 queries of the tile, relative to its first one. They begin at a multiple of a step,
// so that no step leaves its stage, or of 64 in a stage that has room behind.
struct GroupKeys {
  int begin, end;
};
template <bool IsResident, int Step>
__device__ __forceinline__ GroupKeys keys_of_group(const Band& band, const BandKeys& of_tile,
                                                   int first_query, int q_len, bool all_fit) {
  const int begin = first_query + band.first - of_tile.begin;
  const int end = min(min(first_query + 64, q_len) - 1 + band.end, band.keys) - of_tile.begin;
  if (IsResident && !all_fit)
    return {begin, end};
  return {max(begin, 0) / Step * Step, end};
}

// Stages of keys and values, and their barriers. The front is aligned to 1024 bytes. Outputs take
// the place of the queries.
template <typename Shape>
struct BandShared {
  static constexpr int kBoxes = (Shape::kPanelBytes / Shape::kRowBytes + 255) / 256;
  static constexpr int kBoxBytes = Shape::kPanelBytes / kBoxes;

  unsigned char queries[Shape::kPanels * Shape::kQueryPanelBytes];
  unsigned char keys[Shape::kSlots][Shape::kKeyPanels * Shape::kPanelBytes];
  unsigned char values[Shape::kSlots][Shape::kValuePanels * Shape::kPanelBytes];
  unsigned long long keys_here[Shape::kSlots], values_here[Shape::kSlots];

  // Where a key group other than the first leaves its part, when keys and values are over.
  template <int Threads>
  __device__ __forceinline__ float* part(int key_group) {
    constexpr int kFloats = Threads * (4 + Shape::kValueColumns / 2);
    return reinterpret_cast<float*>(keys) + (key_group - 1) * kFloats;
  }

  // This and what follows by one thread, which needs no barrier in between.
  __device__ __forceinline__ void init_barriers() {
    for (int slot = 0; slot < Shape::kSlots; ++slot) {
      init_barrier(shared_address(&keys_here[slot]), 1);
      init_barrier(shared_address(&values_here[slot]), 1);
    }
    publish_barriers();
  }

  // They arrive with the keys of the first stage; without one no one waits for them.
  __device__ __forceinline__ void load_queries(const TensorMap& q, bool has_keys,
                                               TileOrigin origin) {
    if (!has_keys)
      return;
    load_panels<Shape::kKeyPanels, Shape::kQueryPanelBytes>(shared_address(queries), q,
                                                            shared_address(&keys_here[0]), origin);
  }

  __device__ __forceinline__ void load_stage(const TensorMap& k, const TensorMap& v, int slot,
                                             bool is_first, TileOrigin origin) {
    load_keys(k, slot, is_first, origin);
    load_values(v, slot, origin);
  }
  __device__ __forceinline__ void load_keys(const TensorMap& k, int slot, bool is_first,
                                            TileOrigin origin) {
    constexpr int kQueryBytes = Shape::kKeyPanels * Shape::kQueryPanelBytes;
    const unsigned keys_barrier = shared_address(&keys_here[slot]);
    arrive_expecting(keys_barrier,
                     Shape::kKeyPanels * Shape::kPanelBytes + (is_first ? kQueryBytes : 0));
    load_boxes<Shape::kKeyPanels>(shared_address(keys[slot]), k, keys_barrier, origin);
  }
  __device__ __forceinline__ void load_values(const TensorMap& v, int slot, TileOrigin origin) {
    const unsigned values_barrier = shared_address(&values_here[slot]);
    arrive_expecting(values_barrier, Shape::kValuePanels * Shape::kPanelBytes);
    load_boxes<Shape::kValuePanels>(shared_address(values[slot]), v, values_barrier, origin);
  }
  // Of a step, values behind the first `existing` ones may be anything, and 0 * NaN would spoil the
  // sums. By warp group number `group` of `Groups`, before it multiplies them.
  template <int Groups, int Step>
  __device__ __forceinline__ void clear_values(int slot, int offset, int existing, int group) {
    if (existing >= Step)
      return;
    clear_rows<Shape::kValuePanels, Shape::kPanelBytes, Step>(
        shared_address(values[slot]) + offset * Shape::kRowBytes, existing, threadIdx.x % 128);
    fence_for_wgmma();
    group_barrier<Groups>(group);
  }

 private:
  template <int Panels>
  __device__ __forceinline__ static void load_boxes(unsigned shared, const TensorMap& map,
                                                    unsigned barrier, TileOrigin origin) {
    const int row = origin.row;
#pragma unroll
    for (int i = 0; i < Panels * kBoxes; ++i) {
      origin.column = i / kBoxes * 64;
      origin.row = row + i % kBoxes * (kBoxBytes / Shape::kRowBytes);
      load_tile(shared + i * kBoxBytes, map, barrier, origin);
    }
  }
};

}  // namespace stof
