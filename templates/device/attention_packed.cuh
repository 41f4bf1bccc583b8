// Query tiles and key tiles of an attention that are packed of groups of 16 rows, as
// mask::PackedTiles lists them.
#pragma once

#include "device/attention_producer.cuh"

namespace stof {

// A box of 64 or 16 keys is known by its first group of 16, and its size in the bits above that: 3,
// or 1; 0 where there is none, since one before it reaches that far.
template <typename Shape>
struct PackedSource {
  static constexpr bool kHasAll = false;
  static constexpr int kBoxes = 4, kNumbers = 2;
  static constexpr int kGroupBytes = 16 * Shape::kRowBytes;  // of a panel

  const TensorMap& q;
  const TensorMap& k;
  const TensorMap& v;
  const TensorMap& k16;
  const TensorMap& v16;
  const int* row_groups;

  __device__ __forceinline__ int row(int row) const { return 16 * half(row_groups, row / 16); }
  __device__ __forceinline__ void load_queries(unsigned queries, unsigned barrier, int first_row,
                                               TileOrigin origin, int lane) const {
    constexpr int kGroups = 4 * Shape::kGroups;
    for (int i = lane; i < kGroups * Shape::kKeyPanels; i += 32) {
      const int panel = i / kGroups, group = i % kGroups;
      origin.column = panel * 64;
      origin.row = row(first_row + 16 * group);
      load_tile(queries + panel * Shape::kQueryPanelBytes + group * kGroupBytes, q, barrier,
                origin);
    }
  }

  __device__ __forceinline__ static int listed(const int* boxes, int box) {
    return half(boxes, box);
  }
  __device__ __forceinline__ static int behind_list(int place, int) {
    return place % kBoxes == 0 ? 0xffff : 0;
  }
  template <bool IsKeys>
  __device__ __forceinline__ void load_box(unsigned shared, unsigned barrier, int box,
                                           TileOrigin origin) const {
    origin.row = 16 * (box & 0x3fff);
    if (box >> 14 == 3)
      load_tile(shared, IsKeys ? k : v, barrier, origin);
    else if (box >> 14 == 1)
      load_tile(shared, IsKeys ? k16 : v16, barrier, origin);
  }

 private:
  __device__ __forceinline__ static int half(const int* numbers, int index) {
    return __ldg(reinterpret_cast<const unsigned short*>(numbers) + index);
  }
};

}  // namespace stof
