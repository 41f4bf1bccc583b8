// The two matrix products of attention by one warp, whose row blocks are 16 query rows each. Element e of the n-th
// 8-column block of an accumulator row block is [4 n + e].
#pragma once

#include "device/attention_rows.cuh"
#include "device/mma.cuh"
#include "device/numeric.cuh"

namespace stof {

// The Q fragments of a warp: kept in registers while they are few, else read again for every key tile.
template <int RowBlocks, int HeadDim>
struct QueryFragments {
  static constexpr int kSteps = PaddedRows<HeadDim>::kColumns / 16;
  static constexpr bool kAreKept = RowBlocks * kSteps <= 8;
  static constexpr int kKept = kAreKept ? kSteps : 1;

  unsigned address[RowBlocks];
  unsigned fragment[kKept][RowBlocks][4];

  __device__ __forceinline__ void read(int kept, int step) {
#pragma unroll
    for (int block = 0; block < RowBlocks; ++block) ldmatrix_x4(fragment[kept][block], address[block] + step * 32);
  }
  __device__ __forceinline__ void keep() {
    if constexpr (kAreKept) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) read(step, step);
    }
  }
  // The fragments of one step of the depth.
  __device__ __forceinline__ unsigned (&at(int step))[RowBlocks][4] {
    if constexpr (!kAreKept) read(0, step);
    return fragment[kAreKept ? step : 0];
  }
};

// One step of the depth of s = Q K^T over `Keys` keys; `keys` is the lane's address in the K tile.
template <typename T, int Keys, int RowBlocks, int HeadDim>
__device__ __forceinline__ void multiply_keys(float (&s)[RowBlocks][Keys / 2], QueryFragments<RowBlocks, HeadDim>& q,
                                              unsigned keys, int step) {
  unsigned(&a)[RowBlocks][4] = q.at(step);
#pragma unroll
  for (int pair = 0; pair < Keys / 16; ++pair) {
    unsigned b[4];
    ldmatrix_x4(b, keys + pair * 16 * PaddedRows<HeadDim>::kPitch + step * 32);
#pragma unroll
    for (int block = 0; block < RowBlocks; ++block) {
      mma_m16n8k16<T>(&s[block][8 * pair], a[block], b[0], b[1]);
      mma_m16n8k16<T>(&s[block][8 * pair + 4], a[block], b[2], b[3]);
    }
  }
}

// One step of o += P V, over 16 keys: P is the accumulator of the scores, rounded to T; `values` is the lane's address in
// the V tile.
template <typename T, int ValueDim, int RowBlocks, int Scores>
__device__ __forceinline__ void multiply_values(float (&o)[RowBlocks][PaddedRows<ValueDim>::kColumns / 2],
                                                const float (&p)[RowBlocks][Scores], unsigned values, int step) {
  unsigned a[RowBlocks][4];
#pragma unroll
  for (int block = 0; block < RowBlocks; ++block)
#pragma unroll
    for (int i = 0; i < 4; ++i) a[block][i] = pack2<T>(p[block][8 * step + 2 * i], p[block][8 * step + 2 * i + 1]);
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

// Both products of a turn: the scores of the next keys, and the outputs of the present ones, whose probabilities come from
// the logarithms `p`. The exponentials stand between the first product's instructions, which do not wait for them.
template <bool HasKeys, bool HasValues, typename T, int Keys, int ValueDim, int RowBlocks, int HeadDim, typename Rows>
__device__ __forceinline__ void multiply(float (&s)[RowBlocks][Keys / 2], QueryFragments<RowBlocks, HeadDim>& q,
                                         unsigned keys, float (&p)[RowBlocks][Keys / 2], Rows& rows,
                                         float (&o)[RowBlocks][PaddedRows<ValueDim>::kColumns / 2], unsigned values) {
  constexpr int kSteps = QueryFragments<RowBlocks, HeadDim>::kSteps, kChunks = Keys / 16;
#pragma unroll
  for (int i = 0; HasKeys && i < RowBlocks * Keys / 2; ++i) s[i / (Keys / 2)][i % (Keys / 2)] = 0;
#pragma unroll
  for (int turn = 0; turn < (kSteps > kChunks ? kSteps : kChunks); ++turn) {
    if (HasKeys && turn < kSteps) multiply_keys<T, Keys>(s, q, keys, turn);
    if (HasValues && turn < kChunks) rows.exponentiate(p, turn);
  }
#pragma unroll
  for (int step = 0; HasValues && step < kChunks; ++step) multiply_values<T, ValueDim>(o, p, values, step);
}

}  // namespace stof
