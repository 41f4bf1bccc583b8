// Attention of up to 16 queries by warps that share nothing until the end: keys and values go from
// memory straight to the registers in which mma.m16n8k16 takes them. What a product adds up, or
// puts side by side, may come in any order, so a lane has 16 bytes of neighbours and calls them the
// elements that it should have.
#pragma once

#include "device/attention_softmax.cuh"
#include "device/mma.cuh"
#include "device/numeric.cuh"
#include "device/stream.cuh"

namespace stof {

constexpr int kPieceKeys = 16;  // that a warp takes at a time

// 16 bytes of a row, or zeros.
template <typename T>
__device__ __forceinline__ uint4 load_if(bool exists, const T* place) {
  return exists ? load_once(place) : uint4{};
}

// 16 queries or keys of a warp, as A or B fragments. Of 32 elements of a row a lane has the eight
// neighbours from 8 * (lane % 4) on.
template <typename T, int HeadDim>
struct HeadRows {
  static constexpr int kChunks = (HeadDim + 31) / 32;

  uint4 rows[2][kChunks];  // lane / 4, and eight further on

  // Those from row `first` on; rows behind `last`, which is one of the tensor, are row `last`
  // again: their probabilities are 0, and what they are multiplied by must not be NaN.
  template <typename Stride>
  __device__ __forceinline__ void load(const T* all, Stride row_bytes, int first, int last,
                                       int lane) {
    const int column = lane % 4 * 8;
#pragma unroll
    for (int at = 0; at < 2; ++at) {
      const int place = min(first + lane / 4 + 8 * at, last);
      const T* const row = strides_on(all + column, place, row_bytes);
#pragma unroll
      for (int i = 0; i < kChunks; ++i)
        rows[at][i] = load_if(32 * i + column < HeadDim, row + 32 * i);
    }
  }
};

// s = q k^T, eight scores of a lane.
template <typename T, int HeadDim>
__device__ __forceinline__ void multiply(float* s, const HeadRows<T, HeadDim>& q,
                                         const HeadRows<T, HeadDim>& k) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    s[i] = 0;
#pragma unroll
  for (int chunk = 0; chunk < HeadRows<T, HeadDim>::kChunks; ++chunk) {
    const uint4 low = q.rows[0][chunk], high = q.rows[1][chunk];
    const unsigned a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const uint4 b = k.rows[n][chunk];
      mma_m16n8k16<T>(&s[4 * n], a[0], b.x, b.y);
      mma_m16n8k16<T>(&s[4 * n], a[1], b.z, b.w);
    }
  }
}

// 16 values as B fragments. Of 64 columns a lane has the eight neighbours from 8 * (lane / 4) on,
// of keys 2 * (lane % 4), the next one, and those eight further on. So column n of block j of 8
// columns is column 8 n + j.
template <typename T, int ValueDim>
struct FewValues {
  static constexpr int kChunks = (ValueDim + 63) / 64;
  static constexpr int kOutputs = 32 * kChunks;  // of a lane
  static constexpr int kColumns = 64 * kChunks;

  uint4 rows[4][kChunks];

  // As HeadRows::load does.
  template <typename Stride>
  __device__ __forceinline__ void load(const T* all, Stride row_bytes, int first, int last,
                                       int lane) {
    const int column = lane / 4 * 8;
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int place = min(first + lane % 4 * 2 + at % 2 + at / 2 * 8, last);
      const T* const row = strides_on(all + column, place, row_bytes);
#pragma unroll
      for (int i = 0; i < kChunks; ++i)
        rows[at][i] = load_if(64 * i + column < ValueDim, row + 64 * i);
    }
  }

  // o += p v, where p, eight probabilities of a lane, is rounded to T.
  __device__ __forceinline__ void multiply_add(float (&o)[1][kOutputs], const float* p) const {
    const unsigned a[4] = {pack2<T>(p[0], p[1]), pack2<T>(p[2], p[3]), pack2<T>(p[4], p[5]),
                           pack2<T>(p[6], p[7])};
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        mma_m16n8k16<T>(&o[0][(8 * chunk + j) * 4], a, pair(rows[0][chunk], rows[1][chunk], j),
                        pair(rows[2][chunk], rows[3][chunk], j));
      }
    }
  }

 private:
  // Element j of two rows.
  __device__ __forceinline__ static unsigned pair(const uint4& first, const uint4& second, int j) {
    const unsigned of_first[4] = {first.x, first.y, first.z, first.w};
    const unsigned of_second[4] = {second.x, second.y, second.z, second.w};
    return __byte_perm(of_first[j / 2], of_second[j / 2], j % 2 == 0 ? 0x5410 : 0x7632);
  }
};

// The reference of the exponents of a row over some of its keys, and their sum.
using RowHead = float2;

// What `Parts` warps or CTAs have of the same rows. A part has a head for each row, and `row_quads`
// times four outputs of it; parts are so many heads and quads apart.
struct RowParts {
  RowHead* heads;
  float4* quads;
  int head_pitch, part_quads, row_quads;

  __device__ __forceinline__ RowHead& head(int part, int row) const {
    return heads[part * head_pitch + row];
  }
  __device__ __forceinline__ float4& quad(int part, int row, int index) const {
    return quads[static_cast<long long>(part) * part_quads + row * row_quads + index];
  }

  // Four outputs over all parts, and the head of their row, in the order of the parts.
  template <int Parts>
  __device__ __forceinline__ float4 sum(RowHead& total, int row, int index) const {
    constexpr int kAtOnce = Parts < 16 ? Parts : 16;  // asked for
    total = {minus_infinity(), 0.0f};
    float4 sums = {};
#pragma unroll 1
    for (int first = 0; first < Parts; first += kAtOnce) {
      RowHead theirs[kAtOnce];
      float4 outputs[kAtOnce];
      float best = total.x;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        theirs[i] = head(first + i, row);
        outputs[i] = quad(first + i, row, index);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        best = fmaxf(best, theirs[i].x);
      const float factor = rescale_factor(total.x, best);
      total = {best, total.y * factor};
      sums = {sums.x * factor, sums.y * factor, sums.z * factor, sums.w * factor};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const float their_factor = rescale_factor(theirs[i].x, best);
        total.y += their_factor * theirs[i].y;
        sums.x += their_factor * outputs[i].x;
        sums.y += their_factor * outputs[i].y;
        sums.z += their_factor * outputs[i].z;
        sums.w += their_factor * outputs[i].w;
      }
    }
    return sums;
  }

  // Leaves what a warp has. The sums are over all lanes.
  template <int Outputs>
  __device__ __forceinline__ void leave(int part, const SoftmaxRows<1>& rows,
                                        const float (&o)[1][Outputs], int count, int lane) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (row >= count)
        continue;
      if (lane % 4 == 0)
        head(part, row) = {rows.reference[0][half], rows.sum[0][half]};
#pragma unroll
      for (int i = 0; i < Outputs / 8; ++i) {
        const auto output = [&](int column) {  // of the 16 neighbours of the lane in 64
          return o[0][(i / 4 * 8 + column % 8) * 4 + column / 8 + 2 * half];
        };
        const int at = i % 4 * 4;
        quad(part, row, i / 4 * 16 + lane % 4 * 4 + i % 4) = {output(at), output(at + 1),
                                                              output(at + 2), output(at + 3)};
      }
    }
  }
};

}  // namespace stof
