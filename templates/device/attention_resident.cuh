// Attention of query tiles whose keys are all there at once: those of a window that moves along
// with them, and global ones. Where they lie, and how the blocks of a cluster put sums together.
#pragma once

#include "device/attention_mask.cuh"
#include "device/attention_softmax.cuh"
#include "device/attention_wgmma.cuh"
#include "device/cluster.cuh"

namespace stof {

// Numbers of groups of 16 rows, as mask::packed_groups packs them.
struct PackedGroups {
  long long first, second;

  __device__ __forceinline__ int operator[](int i) const {
    return static_cast<int>((i < 4 ? first : second) >> i % 4 * 16 & 0xffff);
  }
  __device__ __forceinline__ bool holds(int group) const {
    bool is_there = false;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      is_there |= (*this)[i] == group;
    return is_there;
  }
};

// What a block has of a query tile for each warp group, or of one and a run of keys, in boxes of 64
// rows. The front is aligned to 1024 bytes. Outputs take the place of the queries, and sums that of
// keys and values.
template <int Groups, int Boxes>
struct ResidentShared {
  static constexpr int kRowBytes = 128, kGroupBytes = 16 * kRowBytes, kBoxBytes = 64 * kRowBytes;

  unsigned char queries[Groups * kBoxBytes];
  unsigned char keys[Boxes][kBoxBytes], values[Boxes][kBoxBytes];
  unsigned long long keys_here[Boxes], values_here[Boxes];

  // By one thread.
  __device__ __forceinline__ void init_barriers() {
    for (int box = 0; box < Boxes; ++box) {
      init_barrier(shared_address(&keys_here[box]), 1);
      init_barrier(shared_address(&values_here[box]), 1);
    }
    publish_barriers();
  }
};

// The sums of the same 64 rows over different keys: those of the warp groups of a block but the
// first, as leave_part leaves them, and those of the block, for the others of its cluster.
template <int Groups, int Blocks, int Columns>
struct BlockSums {
  static constexpr int kQuads = 1 + Columns / 8;  // of a lane

  float of_groups[Groups - 1][128 * (4 + Columns / 2)];
  float4 quads[4][kQuads][32];  // of each warp, as leave_quads leaves them

  // Once all blocks have left theirs: columns 16 * piece … of the rows of a warp.
  template <typename Rows>
  __device__ __forceinline__ void take(Rows& rows, float (&outputs)[1][8], int of_warp, int piece,
                                       int lane) const {
    take_quads<Blocks>(rows, outputs, Blocks, 2 * piece, [&](int block) {
      return [&, block](int i) { return load_from(block, &quads[of_warp][i][lane]); };
    });
  }
};

}  // namespace stof
