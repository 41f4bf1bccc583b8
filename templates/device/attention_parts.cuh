// Long lists of key tiles that several blocks share: each warp leaves its sums in global memory,
// where those of all parts are put together in their order, and so with the same bits every time.
#pragma once

#include "device/attention_grid.cuh"
#include "device/attention_softmax.cuh"

namespace stof {

// What is worked on at a time, of the entry at a position.
struct AttentionUnit {
  int position;
  EntryPart part;
};

// The first `count` entries of an order are each worked on in so many parts, the others whole.
struct LongTiles {
  static constexpr int kQuarters = 4;

  int count, parts;

  __device__ __forceinline__ int units(int entries) const {
    return entries + count * (parts - 1 + kQuarters);
  }
  // Parts come first, and sums, which are quick, when all else is under way.
  __device__ __forceinline__ AttentionUnit unit(int units, int number) const {
    const int of_long = count * parts, sums = units - count * kQuarters;
    if (number < of_long) {
      const Division at = divide(number, parts);
      return {at.quotient, {at.rest, parts}};
    }
    if (number < sums)
      return {number - of_long + count, {0, 1}};
    const Division at = divide(number - sums, kQuarters);
    return {at.quotient, {parts + at.rest, parts}};
  }
};

// Where there are none, kernels are a quarter smaller, and quicker to compile.
struct NoLongTiles {
  static constexpr int count = 0;

  __device__ __forceinline__ int units(int entries) const { return entries; }
  __device__ __forceinline__ AttentionUnit unit(int, int number) const { return {number, {0, 1}}; }
};

// Adds 1, from `last` on to 0 again, after all that the warp has written; the number before.
__device__ __forceinline__ unsigned count_up(unsigned* number, unsigned last) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(number)), "r"(last)
               : "memory");
  return before;
}

__device__ __forceinline__ unsigned load_count(const unsigned* number) {
  unsigned now;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(now)
               : "l"(__cvta_generic_to_global(number))
               : "memory");
  return now;
}

// The sums of the parts of 16 rows of a query tile of `Warps` times as many, and how many of them
// are there: zero before the first and after the last.
template <int Warps, int Outputs, bool FromSigns>
struct PartSums {
  using Rows = SoftmaxRows<1, FromSigns>;
  static constexpr int kQuads = 1 + Outputs / 4;  // of a lane, as leave_quads leaves them

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

  __device__ __forceinline__ void leave(const Rows& rows, const float (&outputs)[1][Outputs],
                                        int part, int lane) const {
    leave_quads(sums + part * kQuads * 32 + lane, rows, outputs);
  }
  // Of a warp that has left its part, whether all others are there, of so many in all.
  __device__ __forceinline__ bool is_last(int arrivals, int lane) const {
    __syncwarp();
    const unsigned last = arrivals - 1, before = lane == 0 ? count_up(arrived, last) : 0;
    return __shfl_sync(0xffffffffu, before, 0) == last;
  }
  // Of a warp that leaves none, whether all parts are there. It waits for a time in which they will
  // be if others have begun them all, which no one knows. If they are not, it has arrived itself,
  // so that whoever leaves the last one is the last of parts + 1.
  __device__ __forceinline__ bool are_there(int lane) const {
    constexpr int kPatience = 256;  // loads out of L2, some 100 us
    bool has_all = false;
    if (lane == 0) {
#pragma unroll 1
      for (int i = 0; i < kPatience && !has_all; ++i)
        has_all = load_count(arrived) == parts;
      if (has_all)
        *arrived = 0;
      else
        has_all = count_up(arrived, parts) == parts;
    }
    return __any_sync(0xffffffffu, has_all);
  }
  // The sums of all parts, once they are there, and their outputs from quad `first` on.
  template <int AtOnce, int Count>
  __device__ __forceinline__ void take(Rows& rows, float (&outputs)[1][Count], int first,
                                       int lane) const {
    take_quads<AtOnce>(rows, outputs, parts, first, [&](int part) {
      return [quads = sums + part * (kQuads * 32) + lane](int i) { return __ldcg(quads + i * 32); };
    });
  }
};

}  // namespace stof
