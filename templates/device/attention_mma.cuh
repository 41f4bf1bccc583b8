// The two matrix products of attention by one warp, whose row blocks are 16 query rows each.
// Element e of the n-th 8-column block of an accumulator row block is [4 n + e].
#pragma once

#include "device/attention_rows.cuh"
#include "device/mma.cuh"
#include "device/pack.cuh"

namespace stof {

// The Q fragments of a warp: kept in registers, or read again for every key tile.
template <int RowBlocks, int HeadDim, bool AreKept>
struct QueryFragments {
  static constexpr int kSteps = PaddedRows<HeadDim>::kColumns / 16;
  static constexpr int kKept = AreKept ? kSteps : 1;

  unsigned address[RowBlocks];
  unsigned fragment[kKept][RowBlocks][4];

  __device__ __forceinline__ void read(int kept, int step) {
#pragma unroll
    for (int block = 0; block < RowBlocks; ++block)
      ldmatrix_x4(fragment[kept][block], address[block] + step * 32);
  }
  __device__ __forceinline__ void keep() {
    if constexpr (AreKept) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        read(step, step);
    }
  }
  // The fragments of one step of the depth.
  __device__ __forceinline__ unsigned (&at(int step))[RowBlocks][4] {
    if constexpr (!AreKept)
      read(0, step);
    return fragment[AreKept ? step : 0];
  }
};

// s = Q K^T; `keys` is the lane's address in the K tile.
template <typename T, int RowBlocks, int HeadDim, bool AreKept, int Scores>
__device__ __forceinline__ void multiply_keys(float (&s)[RowBlocks][Scores],
                                              QueryFragments<RowBlocks, HeadDim, AreKept>& q,
                                              unsigned keys) {
#pragma unroll
  for (int i = 0; i < RowBlocks * Scores; ++i)
    s[i / Scores][i % Scores] = 0;
#pragma unroll
  for (int step = 0; step < PaddedRows<HeadDim>::kColumns / 16; ++step) {
    unsigned(&a)[RowBlocks][4] = q.at(step);
#pragma unroll
    for (int pair = 0; pair < Scores / 8; ++pair) {
      unsigned b[4];
      ldmatrix_x4(b, keys + pair * 16 * PaddedRows<HeadDim>::kPitch + step * 32);
#pragma unroll
      for (int block = 0; block < RowBlocks; ++block) {
        mma_m16n8k16<T>(&s[block][8 * pair], a[block], b[0], b[1]);
        mma_m16n8k16<T>(&s[block][8 * pair + 4], a[block], b[2], b[3]);
      }
    }
  }
}

// o += P V, where P has the order of the scores and is rounded to T; `values` is the lane's address
// in the V tile.
template <typename T, int ValueDim, int RowBlocks, int Scores>
__device__ __forceinline__ void multiply_values(
    float (&o)[RowBlocks][PaddedRows<ValueDim>::kColumns / 2], const float (&p)[RowBlocks][Scores],
    unsigned values) {
#pragma unroll
  for (int step = 0; step < Scores / 8; ++step) {
    unsigned a[RowBlocks][4];
#pragma unroll
    for (int block = 0; block < RowBlocks; ++block)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[block][i] = pack2<T>(p[block][8 * step + 2 * i], p[block][8 * step + 2 * i + 1]);
#pragma unroll
    for (int pair = 0; pair < PaddedRows<ValueDim>::kColumns / 16; ++pair) {
      unsigned b[4];
      ldmatrix_x4_trans(b, values + step * 16 * PaddedRows<ValueDim>::kPitch + pair * 32);
#pragma unroll
      for (int block = 0; block < RowBlocks; ++block) {
        mma_m16n8k16<T>(&o[block][8 * pair], a[block], b[0], b[1]);
        mma_m16n8k16<T>(&o[block][8 * pair + 4], a[block], b[2], b[3]);
      }
    }
  }
}

}  // namespace stof
