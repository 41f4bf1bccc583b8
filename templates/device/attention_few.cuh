// Attention of up to 32 queries by warps that share nothing until the end: each brings its own keys
// and values to shared memory, from where they go to the registers in which mma.m16n8k16 takes
// them. What a product adds up, or puts side by side, may come in any order, so a lane takes 16
// bytes of neighbours and calls them the elements that it should have.
#pragma once

#include "device/async_copy.cuh"
#include "device/attention_softmax.cuh"
#include "device/cluster.cuh"
#include "device/mma.cuh"
#include "device/pack.cuh"
#include "device/stream.cuh"

namespace stof {

constexpr int kPieceKeys = 16;  // that a warp takes at a time

// 16 bytes of a row, or zeros.
template <typename T>
__device__ __forceinline__ uint4 load_if(bool exists, const T* place) {
  return exists ? load_once(place) : uint4{};
}

// 16 rows in shared memory, of lines of 64 elements. Eight neighbouring lanes ask for a line:
// copies that reach memory in smaller parts ask L2 for twice as much (74 % of its time where 49 are
// enough, and 2.4 TB/s where 2.9 were read, on an H100). Of a line, 16 bytes change places with
// others by `Swizzle`, so that lanes that read at once find them in different banks.
template <int Dim, int Chunk, typename Swizzle>
struct RowTile {
  static constexpr int kPitch = (Dim + 63) / 64 * 8;  // quads: 16 bytes each
  static constexpr int kQuads = 16 * kPitch;
  static constexpr int kUsed = (Dim + Chunk - 1) / Chunk * Chunk / 8;  // of a row, the last zeros

  // Asks for those from row `first` on, by a warp: they have come once all lanes' copies have. Rows
  // behind `last`, which is one of the tensor, are row `last` again: their probabilities are 0, and
  // what they are multiplied by must not be NaN.
  template <typename T, typename Stride>
  __device__ __forceinline__ static void request(uint4* tile, const T* all, Stride row_bytes,
                                                 int first, int last, int lane) {
    const unsigned tile_at = shared_address(tile);
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int row = lane / 8 + 4 * at;
      const T* const from = strides_on(all + lane % 8 * 8, min(first + row, last), row_bytes);
      const int to = row * kPitch + (lane % 8 ^ Swizzle::of(row));
#pragma unroll
      for (int line = 0; line < kPitch; line += 8) {
        if (line + 8 <= kUsed || lane % 8 < kUsed - line) {
          const bool exists = (line + lane % 8) * 8 < Dim;
          cp_async_16(tile_at + (to + line) * int(sizeof(uint4)), from + line * 8, exists ? 16 : 0);
        }
      }
    }
  }
};

struct KeySwizzle {
  __device__ __forceinline__ static int of(int row) { return row % 2 * 4; }
};
struct ValueSwizzle {
  __device__ __forceinline__ static int of(int row) { return row & 6; }
};

// 16 queries or keys of a warp, as A or B fragments. Of 32 elements of a row a lane has the eight
// neighbours from 8 * (lane % 4) on; of rows lane / 4 and eight further on.
template <int HeadDim>
struct HeadRows : RowTile<HeadDim, 32, KeySwizzle> {
  static constexpr int kChunks = (HeadDim + 31) / 32;

  struct InRegisters {
    uint4 rows[2][kChunks];

    __device__ __forceinline__ uint4 at(int row, int chunk) const { return rows[row][chunk]; }
  };
  struct InShared {
    const uint4* even;  // of the lane
    const uint4* odd;

    __device__ __forceinline__ InShared(const uint4* tile, int lane)
        : even(tile + lane / 4 * HeadRows::kPitch + lane % 4 + KeySwizzle::of(lane / 4)),
          odd(tile + lane / 4 * HeadRows::kPitch + lane % 4 + (4 - KeySwizzle::of(lane / 4))) {}
    __device__ __forceinline__ uint4 at(int row, int chunk) const {
      return (chunk % 2 == 0 ? even : odd)[8 * row * HeadRows::kPitch + chunk / 2 * 8];
    }
  };

  // As RowTile::request does, to registers.
  template <typename T, typename Stride>
  __device__ __forceinline__ static void load(InRegisters& to, const T* all, Stride row_bytes,
                                              int first, int last, int lane) {
    const int column = lane % 4 * 8;
#pragma unroll
    for (int at = 0; at < 2; ++at) {
      const T* const row =
          strides_on(all + column, min(first + lane / 4 + 8 * at, last), row_bytes);
#pragma unroll
      for (int i = 0; i < kChunks; ++i)
        to.rows[at][i] = load_if(32 * i + column < HeadDim, row + 32 * i);
    }
  }

  // s = q k^T, eight scores of a lane.
  template <typename T, typename Queries>
  __device__ __forceinline__ static void multiply(float* s, const Queries& q, const InShared& k) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      s[i] = 0;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const uint4 low = q.at(0, chunk), high = q.at(1, chunk);
      const unsigned a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const uint4 b = k.at(n, chunk);
        mma_m16n8k16<T>(&s[4 * n], a[0], b.x, b.y);
        mma_m16n8k16<T>(&s[4 * n], a[1], b.z, b.w);
      }
    }
  }
};

// 16 values as B fragments. Of 64 columns a lane has the eight neighbours from 8 * (lane / 4) on,
// of keys 2 * (lane % 4), the next one, and those eight further on. So column n of block j of 8
// columns is column 8 n + j.
template <int ValueDim>
struct ValueRows : RowTile<ValueDim, 64, ValueSwizzle> {
  static constexpr int kChunks = (ValueDim + 63) / 64;
  static constexpr int kOutputs = 32 * kChunks;  // of a lane
  static constexpr int kColumns = 64 * kChunks;

  // o += p v, where p, eight probabilities of a lane for each of `Blocks` blocks of 16 queries, is
  // rounded to T.
  template <typename T, int Blocks>
  __device__ __forceinline__ static void multiply_add(float (&o)[Blocks][kOutputs],
                                                      const float (&p)[Blocks][8],
                                                      const uint4* tile, int lane) {
    const int first = lane % 4 * 2;  // row, and what other such rows swizzle by
    const uint4* const own =
        tile + first * ValueRows::kPitch + (lane / 4 ^ ValueSwizzle::of(first));
    unsigned a[Blocks][4];
#pragma unroll
    for (int i = 0; i < 4 * Blocks; ++i)
      a[i / 4][i % 4] = pack2<T>(p[i / 4][i % 4 * 2], p[i / 4][i % 4 * 2 + 1]);
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      uint4 rows[4];
#pragma unroll
      for (int at = 0; at < 4; ++at)
        rows[at] = own[(at % 2 + at / 2 * 8) * ValueRows::kPitch + 8 * chunk];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const unsigned low = pair(rows[0], rows[1], j), high = pair(rows[2], rows[3], j);
#pragma unroll
        for (int block = 0; block < Blocks; ++block)
          mma_m16n8k16<T>(&o[block][(8 * chunk + j) * 4], a[block], low, high);
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

  // What another CTA of the cluster has at the same place of its shared memory.
  __device__ __forceinline__ RowParts in_cta(unsigned rank) const {
    return {place_in_cta(rank, heads), place_in_cta(rank, quads), head_pitch, part_quads,
            row_quads};
  }

  __device__ __forceinline__ RowHead& head(int part, int row) const {
    return heads[part * head_pitch + row];
  }
  __device__ __forceinline__ float4& quad(int part, int row, int index) const {
    return quads[static_cast<long long>(part) * part_quads + row * row_quads + index];
  }

  // Leaves what a warp has. The sums are over all lanes.
  template <int Blocks, int Outputs>
  __device__ __forceinline__ void leave(int part, const SoftmaxRows<Blocks>& rows,
                                        const float (&o)[Blocks][Outputs], int count,
                                        int lane) const {
#pragma unroll
    for (int at = 0; at < 2 * Blocks; ++at) {
      const int block = at / 2, half = at % 2, row = lane / 4 + 8 * at;
      if (row >= count)
        continue;
      if (lane % 4 == 0)
        head(part, row) = {rows.reference[block][half], rows.sum[block][half]};
#pragma unroll
      for (int i = 0; i < Outputs / 8; ++i) {
        const auto output = [&](int column) {  // of the 16 neighbours of the lane in 64
          return o[block][(i / 4 * 8 + column % 8) * 4 + column / 8 + 2 * half];
        };
        const int at = i % 4 * 4;
        quad(part, row, i / 4 * 16 + lane % 4 * 4 + i % 4) = {output(at), output(at + 1),
                                                              output(at + 2), output(at + 3)};
      }
    }
  }
};

// Where a part lies, and which one it is there.
struct PartPlace {
  RowParts parts;
  int part;
};

// Four outputs over all parts, and the head of their row, in the order of the parts. `of(part)` is
// its place.
template <int Parts, typename Of>
__device__ __forceinline__ float4 sum_parts(const Of& of, RowHead& total, int row, int index) {
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
      const auto [parts, part] = of(first + i);
      theirs[i] = parts.head(part, row);
      outputs[i] = parts.quad(part, row, index);
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

}  // namespace stof
