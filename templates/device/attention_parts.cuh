// Long lists of key tiles that several blocks share: each warp leaves its sums in global memory,
// and the one that arrives last adds up those of all parts, in their order and so with the same
// bits every time.
#pragma once

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
  return {unit / long_tiles.parts, unit % long_tiles.parts, long_tiles.parts};
}

// The number there, and all that was written before it was.
__device__ __forceinline__ unsigned load_acquire(const unsigned* number) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(number))
               : "memory");
  return value;
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
// are there: zero before the first and after the last.
template <int Warps, int Outputs, bool FromSigns>
struct PartSums {
  using Rows = SoftmaxRows<1, FromSigns>;
  static constexpr int kFloats = 32 * (4 + Outputs);  // of a part

  int parts;
  unsigned* arrived;
  float* sums;

  // Of a warp of number `tile` of the tiles that lie in a workspace one behind the other: the
  // numbers of its warps, then their sums.
  __device__ __forceinline__ PartSums(int* workspace, int tile, int parts, int warp)
      : parts(parts) {
    int* const of_tile = workspace + static_cast<long long>(tile) * Warps * (1 + parts * kFloats);
    arrived = reinterpret_cast<unsigned*>(of_tile + warp);
    sums = reinterpret_cast<float*>(of_tile + Warps) + warp * parts * kFloats;
  }

  // False in all but the last of the parts, which gets the sums of all. Those in `rows` are over
  // all lanes.
  __device__ __forceinline__ bool add(Rows& rows, float (&outputs)[1][Outputs], int part,
                                      int lane) const {
    if (!arrives_last(sums + part * kFloats, rows, outputs, lane))
      return false;
    __syncwarp();  // what a lane has acquired is there for all
    rows.clear();
#pragma unroll
    for (int i = 0; i < Outputs; ++i)
      outputs[0][i] = 0;
#pragma unroll 1
    for (int other = 0; other < parts; ++other)
      merge(rows, outputs, sums + other * kFloats + lane);
    return true;
  }

 private:
  // The last one does not say that its part is there: it alone reads it.
  __device__ __forceinline__ bool arrives_last(float* part, const Rows& rows,
                                               const float (&outputs)[1][Outputs], int lane) const {
    const unsigned last = parts - 1;
    unsigned before = lane == 0 ? load_acquire(arrived) : 0;
    before = __shfl_sync(0xffffffffu, before, 0);
    leave_part<32>(part, rows, outputs, lane);
    if (before == last) {
      if (lane == 0)
        *arrived = 0;
      return true;
    }
    __syncwarp();
    before = lane == 0 ? count_up(arrived, last) : 0;
    return __shfl_sync(0xffffffffu, before, 0) == last;
  }

  // Adds what leave_part left.
  __device__ __forceinline__ static void merge(Rows& rows, float (&outputs)[1][Outputs],
                                               const float* part) {
    float theirs[kAtOnce], best[1][2], factor[1][2], their_factor[2];
    load(theirs, part + 4 * 32, Outputs);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float reference = __ldcg(part + 2 * half * 32);
      best[0][half] = fmaxf(rows.reference[0][half], reference);
      their_factor[half] = rescale_factor(reference, best[0][half]);
    }
    rows.follow(best, factor);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows.sum[0][half] += their_factor[half] * __ldcg(part + (2 * half + 1) * 32);
#pragma unroll
    for (int first = 0; first < Outputs; first += kAtOnce) {
      if (first > 0)
        load(theirs, part + (4 + first) * 32, Outputs - first);
#pragma unroll
      for (int i = first; i < Outputs && i < first + kAtOnce; ++i) {
        const int half = i % 4 / 2;
        outputs[0][i] = outputs[0][i] * factor[0][half] + their_factor[half] * theirs[i - first];
      }
    }
  }

  // Floats in registers, besides the sums.
  static constexpr int kAtOnce = Outputs <= 64 ? 32 : 8;

  __device__ __forceinline__ static void load(float (&values)[kAtOnce], const float* place,
                                              int count) {
    asm volatile("" ::: "memory");  // no earlier
#pragma unroll
    for (int i = 0; i < kAtOnce && i < count; ++i)
      values[i] = __ldcg(place + i * 32);
  }
};

}  // namespace stof
