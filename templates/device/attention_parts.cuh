// Long lists of key tiles that several blocks share: each warp leaves its sums in global memory,
// and the one that arrives last adds up those of all parts, in their order and so with the same
// bits every time.
#pragma once

#include "device/attention_grid.cuh"
#include "device/attention_softmax.cuh"

namespace stof {

// The first `count` entries of an order are each worked on in so many parts, the others whole.
struct LongTiles {
  int count, parts;

  __device__ __forceinline__ int units(int entries) const { return entries + count * (parts - 1); }
};

// What is worked on at a time: part number `part` of `parts` of the entry at a position.
struct AttentionUnit {
  int position, part, parts;
};

__device__ __forceinline__ AttentionUnit attention_unit(const LongTiles& long_tiles, int unit) {
  const int of_long = long_tiles.count * long_tiles.parts;
  if (unit >= of_long)
    return {unit - of_long + long_tiles.count, 0, 1};
  const Division at = divide(unit, long_tiles.parts);
  return {at.quotient, at.rest, long_tiles.parts};
}

// Adds 1, from `last` on to 0 again, after all that the warp has written; the number before.
__device__ __forceinline__ unsigned count_up(unsigned* number, unsigned last) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(number)), "r"(last)
               : "memory");
  return before;
}

// The sums of the parts of 16 rows of a query tile of `Warps` times as many, and how many of them
// are there: zero before the first and after the last. `AtOnce` of them are asked for at a time.
template <int Warps, int Outputs, bool FromSigns, int AtOnce>
struct PartSums {
  using Rows = SoftmaxRows<1, FromSigns>;
  static constexpr int kQuads = 1 + Outputs / 4;  // of a lane, as leave_quads leaves them
  static constexpr int kPiece = Outputs < 32 ? Outputs / 4 : 8;  // in registers of a part

  int parts;
  unsigned* arrived;
  float4* sums;

  // Of a warp of number `tile` of the tiles that lie in a workspace one behind the other, each with
  // room for so many parts: the numbers of its warps, then their sums. The workspace is aligned to
  // 16 bytes.
  __device__ __forceinline__ PartSums(int* workspace, int tile, int room, int parts, int warp)
      : parts(parts) {
    int* const of_tile =
        workspace + static_cast<long long>(tile) * Warps * (1 + room * kQuads * 32 * 4);
    arrived = reinterpret_cast<unsigned*>(of_tile + warp);
    sums = reinterpret_cast<float4*>(of_tile + Warps) + warp * room * kQuads * 32;
  }

  // False in all but the last of the parts, which gets the sums of all. Those in `rows` are over
  // all lanes.
  __device__ __forceinline__ bool add(Rows& rows, float (&outputs)[1][Outputs], int part,
                                      int lane) const {
    leave(rows, outputs, part, lane);
    if (!is_last(lane))
      return false;
    take(rows, outputs, lane);
    return true;
  }

  __device__ __forceinline__ void leave(const Rows& rows, const float (&outputs)[1][Outputs],
                                        int part, int lane) const {
    leave_quads(sums + part * kQuads * 32 + lane, rows, outputs);
  }
  // Of a warp that has left its part, whether all the others have.
  __device__ __forceinline__ bool is_last(int lane) const {
    __syncwarp();
    const unsigned last = parts - 1;
    const unsigned before = lane == 0 ? count_up(arrived, last) : 0;
    return __shfl_sync(0xffffffffu, before, 0) == last;
  }
  // The sums of all parts.
  __device__ __forceinline__ void take(Rows& rows, float (&outputs)[1][Outputs], int lane) const {
    rows.clear();
#pragma unroll
    for (int i = 0; i < Outputs; ++i)
      outputs[0][i] = 0;
#pragma unroll 1
    for (int first = 0; first < parts; first += AtOnce)
      merge(rows, outputs, first, lane);
  }

 private:
  // Adds parts from `first` on.
  __device__ __forceinline__ void merge(Rows& rows, float (&outputs)[1][Outputs], int first,
                                        int lane) const {
    asm volatile("" ::: "memory");  // nothing is loaded earlier
    float4 x[AtOnce][kPiece], heads[AtOnce];
    const float4* quads[AtOnce];
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      // The last one is there in place of those that are not.
      quads[i] = sums + min(first + i, parts - 1) * kQuads * 32 + lane;
      heads[i] = __ldcg(quads[i]);
      load(x[i], quads[i], 1);
    }
    float factor[AtOnce][1][2], their_factor[AtOnce][2];
#pragma unroll
    for (int i = 0; i < AtOnce && (i == 0 || first + i < parts); ++i)
      take_head(rows, heads[i], factor[i], their_factor[i]);
#pragma unroll
    for (int at = 1; at < kQuads; at += kPiece) {
#pragma unroll
      for (int i = 0; i < AtOnce && (i == 0 || first + i < parts); ++i) {
        if (at > 1)
          load(x[i], quads[i], at);
#pragma unroll
        for (int j = 0; j < kPiece && at + j < kQuads; ++j) {
          float* const to = outputs[0] + 4 * (at + j - 1);
          to[0] = to[0] * factor[i][0][0] + their_factor[i][0] * x[i][j].x;
          to[1] = to[1] * factor[i][0][0] + their_factor[i][0] * x[i][j].y;
          to[2] = to[2] * factor[i][0][1] + their_factor[i][1] * x[i][j].z;
          to[3] = to[3] * factor[i][0][1] + their_factor[i][1] * x[i][j].w;
        }
      }
    }
  }

  __device__ __forceinline__ static void load(float4 (&x)[kPiece], const float4* quads, int at) {
#pragma unroll
    for (int j = 0; j < kPiece && at + j < kQuads; ++j)
      x[j] = __ldcg(quads + (at + j) * 32);
  }

  // What older outputs and those of a part are to be multiplied by.
  __device__ __forceinline__ static void take_head(Rows& rows, const float4& head,
                                                   float (&factor)[1][2],
                                                   float (&their_factor)[2]) {
    const float reference[2] = {head.x, head.z}, sum[2] = {head.y, head.w};
    float best[1][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      best[0][half] = fmaxf(rows.reference[0][half], reference[half]);
      their_factor[half] = rescale_factor(reference[half], best[0][half]);
    }
    rows.follow(best, factor);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.sum[0][half] += their_factor[half] * sum[half];
  }
};

}  // namespace stof
