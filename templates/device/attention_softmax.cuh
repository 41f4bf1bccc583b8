// The online softmax of attention, on scores in the accumulator order of mma.m16n8k16.
#pragma once

#include "device/numeric.cuh"

namespace stof {

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Over the four lanes that share an accumulator row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// What the older parts of a row are multiplied by when its reference goes from `from` up to `to`. A
// row that has seen no key yet has nothing to multiply, and -inf - -inf would be NaN.
__device__ __forceinline__ float rescale_factor(float from, float to, float scale_log2) {
  return to == minus_infinity() ? 1.0f : exp2_approx((from - to) * scale_log2);
}

// The state of the rows of a warp, one for each half of a row block. `reference` is a raw score:
// sums and outputs are relative to exp2(reference * scale_log2).
template <int RowBlocks>
struct SoftmaxRows {
  // The reference need not be the maximum: it follows only when a probability would pass 2^8, which
  // half holds with the same precision as 1. So the outputs are rescaled once or twice a row and
  // not for every tile.
  static constexpr float kSlackLog2 = 8.0f;

  float reference[RowBlocks][2];
  float sum[RowBlocks][2];  // of this lane's columns

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      reference[i / 2][i % 2] = minus_infinity();
      sum[i / 2][i % 2] = 0;
    }
  }

  // Turns scores into probabilities, and brings `o` to the references that they are relative to.
  template <int Scores, int Outputs>
  __device__ __forceinline__ void step(float (&s)[RowBlocks][Scores],
                                       float (&o)[RowBlocks][Outputs], float scale_log2) {
    float factor[RowBlocks][2];
    if (raise(s, factor, scale_log2))
      scale_rows(o, factor);
    to_probabilities(s, scale_log2);
  }

  // Has the references follow new scores. Where it says so, to all lanes, older outputs are to be
  // multiplied by `factor`.
  template <int Scores>
  __device__ __forceinline__ bool raise(const float (&s)[RowBlocks][Scores],
                                        float (&factor)[RowBlocks][2], float scale_log2) {
    float best[RowBlocks][2];
    bool is_passed = false;
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      best[i / 2][i % 2] = fmaxf(reference[i / 2][i % 2], row_max(s[i / 2], i % 2));
      is_passed |= (best[i / 2][i % 2] - reference[i / 2][i % 2]) * scale_log2 > kSlackLog2;
    }
    is_passed = __any_sync(0xffffffffu, is_passed);
    if (is_passed)
      follow(best, factor, scale_log2);
    return is_passed;
  }

  template <int Scores>
  __device__ __forceinline__ void to_probabilities(float (&s)[RowBlocks][Scores],
                                                   float scale_log2) {
    float offset[RowBlocks][2];
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      const float top = reference[i / 2][i % 2];
      offset[i / 2][i % 2] = top == minus_infinity() ? 0.0f : top * scale_log2;
    }
    // In the order in which the second product takes them: 16 keys of all row blocks.
#pragma unroll
    for (int i = 0; i < RowBlocks * Scores; ++i) {
      const int block = i / 8 % RowBlocks, half = i % 4 / 2;
      float& x = s[block][i / (8 * RowBlocks) * 8 + i % 8];
      x = exp2_approx(fmaf(x, scale_log2, -offset[block][half]));
      sum[block][half] += x;
    }
  }

  // Sums over all columns, in every lane.
  __device__ __forceinline__ void add_lanes() {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i)
      sum[i / 2][i % 2] = quad_sum(sum[i / 2][i % 2]);
  }

  // Outputs are to be multiplied by `factor` then.
  __device__ __forceinline__ void follow(const float (&best)[RowBlocks][2],
                                         float (&factor)[RowBlocks][2], float scale_log2) {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      const int block = i / 2, half = i % 2;
      factor[block][half] = rescale_factor(reference[block][half], best[block][half], scale_log2);
      reference[block][half] = best[block][half];
      sum[block][half] *= factor[block][half];
    }
  }

  template <int Outputs>
  __device__ __forceinline__ static void scale_rows(float (&o)[RowBlocks][Outputs],
                                                    const float (&factor)[RowBlocks][2]) {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i)
      scale_row(o[i / 2], i % 2, factor[i / 2][i % 2]);
  }

  // Outputs over their sums, which are those over all lanes; rows that saw no key become 0.
  template <int Outputs>
  __device__ __forceinline__ void divide(float (&o)[RowBlocks][Outputs]) const {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      const float all = sum[i / 2][i % 2];
      scale_row(o[i / 2], i % 2, all > 0 ? __fdividef(1.0f, all) : 0.0f);
    }
  }

  template <int Count>
  __device__ __forceinline__ static void scale_row(float (&x)[Count], int half, float factor) {
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) {
      x[4 * i + 2 * half] *= factor;
      x[4 * i + 2 * half + 1] *= factor;
    }
  }

 private:
  template <int Scores>
  __device__ __forceinline__ static float row_max(const float (&s)[Scores], int half) {
    float best = minus_infinity();
#pragma unroll
    for (int i = 0; i < Scores / 4; ++i)
      best = fmaxf(best, fmaxf(s[4 * i + 2 * half], s[4 * i + 2 * half + 1]));
    return quad_max(best);
  }
};

// The logarithm of the sum of exponentials of a row; -inf where it saw no key.
__device__ __forceinline__ float log_sum(float reference, float sum, float scale_log2) {
  constexpr float kLn2 = 0.6931471805599453f;
  return sum > 0 ? (reference * scale_log2 + log2f(sum)) * kLn2 : minus_infinity();
}

// Of a row block, `valid` of whose rows exist.
__device__ __forceinline__ void write_log_sums(float* lse, const float (&reference)[2],
                                               const float (&sum)[2], float scale_log2, int valid,
                                               int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    if (lane % 4 == 0 && row < valid)
      lse[row] = log_sum(reference[half], sum[half], scale_log2);
  }
}

// Hands a part of rows, over some of their keys, from one thread to another through shared memory:
// the same thread of a group of `Threads`. Float n of a thread lies at n * Threads + thread.
template <int Threads, int RowBlocks, int Outputs>
__device__ __forceinline__ void leave_part(float* part, const SoftmaxRows<RowBlocks>& rows,
                                           const float (&o)[RowBlocks][Outputs], int thread) {
#pragma unroll
  for (int i = 0; i < 2 * RowBlocks; ++i) {
    part[2 * i * Threads + thread] = rows.reference[i / 2][i % 2];
    part[(2 * i + 1) * Threads + thread] = rows.sum[i / 2][i % 2];
  }
#pragma unroll
  for (int i = 0; i < RowBlocks * Outputs; ++i)
    part[(4 * RowBlocks + i) * Threads + thread] = o[i / Outputs][i % Outputs];
}

// The sums are those over all lanes.
template <int Threads, int RowBlocks, int Outputs>
__device__ __forceinline__ void add_part(const float* part, SoftmaxRows<RowBlocks>& rows,
                                         float (&o)[RowBlocks][Outputs], float scale_log2,
                                         int thread) {
  float best[RowBlocks][2], factor[RowBlocks][2], own_factor[RowBlocks][2];
#pragma unroll
  for (int i = 0; i < 2 * RowBlocks; ++i) {
    const float reference = part[2 * i * Threads + thread];
    best[i / 2][i % 2] = fmaxf(rows.reference[i / 2][i % 2], reference);
    factor[i / 2][i % 2] = rescale_factor(reference, best[i / 2][i % 2], scale_log2);
  }
  rows.follow(best, own_factor, scale_log2);
  rows.scale_rows(o, own_factor);
#pragma unroll
  for (int i = 0; i < 2 * RowBlocks; ++i) {
    rows.sum[i / 2][i % 2] += factor[i / 2][i % 2] * part[(2 * i + 1) * Threads + thread];
  }
#pragma unroll
  for (int i = 0; i < RowBlocks * Outputs; ++i) {
    o[i / Outputs][i % Outputs] +=
        factor[i / Outputs][i % 4 / 2] * part[(4 * RowBlocks + i) * Threads + thread];
  }
}

}  // namespace stof
