// Attention in which each query sees a run of keys that moves along with it: which keys a tile
// needs, what lies in shared memory, and which scores stay.
#pragma once

#include "device/attention_mask.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// Query i sees the keys from i + first to i + end - 1 that exist.
struct Band {
  int first, end;
  int keys;  // how many exist
};

// Keys of a query tile: from `begin` on, in so many stages. Where the tile's run fits one stage it
// begins there, even ahead of the first key, which is read as zero.
struct BandKeys {
  int begin, stages;
};
template <bool IsResident>
__device__ __forceinline__ BandKeys keys_of_tile(const Band& band, int first_query, int end_query,
                                                 int tile_k) {
  const int begin = first_query + band.first;
  if (IsResident)
    return {band.keys > tile_k ? begin : max(begin, 0), 1};
  const int first = max(begin, 0);
  const int count = min(end_query - 1 + band.end, band.keys) - first;
  return {first, max(count + tile_k - 1, 0) / tile_k};
}

// Those of 64 queries of the tile, relative to its first one. They begin at a multiple of a step,
// so that no step leaves its stage, or of 64 in a stage that has room behind.
struct GroupKeys {
  int begin, end;
};
template <bool IsResident, int Step>
__device__ __forceinline__ GroupKeys keys_of_group(const Band& band, const BandKeys& of_tile,
                                                   int first_query, int q_len, int tile_k) {
  const int begin = first_query + band.first - of_tile.begin;
  const int end = min(min(first_query + 64, q_len) - 1 + band.end, band.keys) - of_tile.begin;
  if (IsResident && band.keys > tile_k)
    return {begin, end};
  return {max(begin, 0) / Step * Step, end};
}

// How many of a lane's columns, two of every eight, lie before a column, which may be any.
__device__ __forceinline__ int lane_columns_before(int column, int lane) {
  const int rest = column - lane % 4 * 2;
  return (rest >> 3) * 2 + min(rest & 7, 2);
}

// Which of a lane's columns from a key on its row, and the one eight rows on, see: those from
// number `first` to `end` - 1.
struct SeenColumns {
  int first[2], end[2];

  __device__ __forceinline__ SeenColumns(const Band& band, int row, int key, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = row + 8 * half;
      first[half] = lane_columns_before(max(query + band.first, 0) - key, lane);
      end[half] = lane_columns_before(min(query + band.end, band.keys) - key, lane);
    }
  }
};

// Hides what is not seen among the scores of 16 rows from `row` on with the keys from `key` on. A
// warp looks only at those 64 keys in which one of its rows ends.
template <int Count>
__device__ __forceinline__ void mask_band(float (&s)[Count], const SeenColumns& seen,
                                          const Band& band, int row, int key) {
  const int first = max(row + 15 + band.first, 0), end = min(row + band.end, band.keys);
#pragma unroll
  for (int block = 0; block < (Count + 31) / 32; ++block) {
    if (key + 64 * block >= first && key + min(64 * block + 64, 2 * Count) <= end)
      continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned bits = low_bits(max(seen.end[half] - 16 * block, 0)) &
                            ~low_bits(max(seen.first[half] - 16 * block, 0));
#pragma unroll
      for (int i = 0; i < 16 && 32 * block + 2 * i < Count; ++i)
        mask_by_bit(s[32 * block + i / 2 * 4 + half * 2 + i % 2], bits, 1u << i);
    }
  }
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
    for (int panel = 0; panel < Shape::kKeyPanels; ++panel) {
      origin.column = 64 * panel;
      load_tile(shared_address(queries) + panel * Shape::kQueryPanelBytes, q,
                shared_address(&keys_here[0]), origin);
    }
  }

  __device__ __forceinline__ void load_stage(const TensorMap& k, const TensorMap& v, int slot,
                                             bool is_first, TileOrigin origin) {
    constexpr int kQueryBytes = Shape::kKeyPanels * Shape::kQueryPanelBytes;
    const unsigned keys_barrier = shared_address(&keys_here[slot]);
    arrive_expecting(keys_barrier,
                     Shape::kKeyPanels * Shape::kPanelBytes + (is_first ? kQueryBytes : 0));
    load_panels<Shape::kKeyPanels>(shared_address(keys[slot]), k, keys_barrier, origin);
    const unsigned values_barrier = shared_address(&values_here[slot]);
    arrive_expecting(values_barrier, Shape::kValuePanels * Shape::kPanelBytes);
    load_panels<Shape::kValuePanels>(shared_address(values[slot]), v, values_barrier, origin);
  }

 private:
  template <int Panels>
  __device__ __forceinline__ static void load_panels(unsigned shared, const TensorMap& map,
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
