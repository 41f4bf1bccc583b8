// The online softmax of attention, on scores in the accumulator order of mma.m16n8k16.
#pragma once

#include "device/pack.cuh"

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

// Of a lane's scores in one of its rows: of the first eight or the last eight of 16.
template <int Scores>
__device__ __forceinline__ float lane_max(const float (&s)[Scores], int half) {
  float best = minus_infinity();
#pragma unroll
  for (int i = 0; i < Scores / 4; ++i)
    best = fmaxf(best, fmaxf(s[4 * i + 2 * half], s[4 * i + 2 * half + 1]));
  return best;
}

// What the older parts of a row are multiplied by when its reference goes from `from` to `to`. A
// row that has seen no key yet has nothing to multiply, and -inf - -inf would be NaN.
__device__ __forceinline__ float rescale_factor(float from, float to) {
  return to == minus_infinity() ? 1.0f : exp2_approx(from - to);
}

// The state of the rows of a warp, one for each half of a row block: sums and outputs are relative
// to exp2(reference).
//
// A reference is the highest score of the step that set it, and stays until a probability would
// pass 2^kSlack, which half holds with the same precision as 1. So the outputs are rescaled once or
// twice a row and not for every step.
//
// FromSigns does without the maxima once all rows have references, which then lie 2^kRoom above:
// that an exponent would pass 0 is seen from its sign, at half an instruction each. Sums near 1
// lose their last digits, so it is not for those that anyone reads; and rows whose scores are there
// at once have no use for it.
template <int RowBlocks, bool FromSigns = false>
struct SoftmaxRows {
  static constexpr float kRoom = FromSigns ? 5.0f : 0.0f, kSlack = 8.0f;
  static constexpr float kHighest = 3.402823466e38f;  // of floats

  float reference[RowBlocks][2];
  float sum[RowBlocks][2];  // of this lane's columns
  bool have_references;     // all rows of the warp, where FromSigns asks

  __device__ __forceinline__ void clear() {
    have_references = false;
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      reference[i / 2][i % 2] = minus_infinity();
      sum[i / 2][i % 2] = 0;
    }
  }

  // Has the rows begin, with references that suit the highest of this lane's scores.
  __device__ __forceinline__ void begin(const float (&highest)[RowBlocks][2], float scale_log2) {
    clear();
    bool have = true;
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      float& to = reference[i / 2][i % 2];
      to = quad_max(highest[i / 2][i % 2]) * scale_log2 + kRoom;
      have &= to != minus_infinity();
    }
    if (FromSigns)
      have_references = __all_sync(0xffffffffu, have);
  }

  // Has the rows begin with scores, which it turns into exponents. A warp whose rows see nothing
  // has its exponents already, -inf; without a branch ptxas makes them while it still looks for the
  // highest scores, and runs out of registers.
  template <int Scores>
  __device__ __forceinline__ void begin_with(float (&s)[RowBlocks][Scores], float scale_log2) {
    clear();
    if constexpr (FromSigns) {
      float best[RowBlocks][2];
      bool see = false;
#pragma unroll
      for (int i = 0; i < 2 * RowBlocks; ++i) {
        best[i / 2][i % 2] = lane_max(s[i / 2], i % 2);
        see |= best[i / 2][i % 2] != minus_infinity();
      }
      if (!__any_sync(0xffffffffu, see))
        return;
      begin(best, scale_log2);
    } else {
      float factor[RowBlocks][2];
      follow_highest(s, factor, scale_log2);
    }
    subtract_bases(s, scale_log2);
  }

  // What exponents are relative to; where all scores are -inf any number will do, and where they
  // are the first ones, 0.
  __device__ __forceinline__ float base(int block, int half) const {
    const float from = reference[block][half];
    if (FromSigns)
      return from == minus_infinity() ? 0.0f : from;
    return fmaxf(from, -kHighest);
  }

  // Turns scores into probabilities, and brings `o` to the references that they are relative to.
  template <int Scores, int Outputs>
  __device__ __forceinline__ void step(float (&s)[RowBlocks][Scores],
                                       float (&o)[RowBlocks][Outputs], float scale_log2) {
    to_exponents_with(s, o, scale_log2);
    to_probabilities(s);
  }

  // Turns scores into exponents of 2, and brings `o` to their references. What is rare lies in one
  // branch: as two, in kernels that do not overlap, it costs bands of wide heads 3 %.
  template <int Scores, int Outputs>
  __device__ __forceinline__ void to_exponents_with(float (&s)[RowBlocks][Scores],
                                                    float (&o)[RowBlocks][Outputs],
                                                    float scale_log2) {
    float factor[RowBlocks][2];
    if constexpr (FromSigns) {
      subtract_bases(s, scale_log2);
      if (!have_references || pass_zero(s)) {
        raise_references(s, factor);
        scale_rows(o, factor);
      }
    } else if (to_exponents(s, factor, scale_log2)) {
      scale_rows(o, factor);
    }
  }

  // Turns scores into exponents of 2, relative to the references. Where it says so, to all lanes,
  // these have changed, and older outputs are to be multiplied by `factor`.
  template <int Scores>
  __device__ __forceinline__ bool to_exponents(float (&s)[RowBlocks][Scores],
                                               float (&factor)[RowBlocks][2], float scale_log2) {
    if constexpr (FromSigns) {
      subtract_bases(s, scale_log2);
      return (!have_references || pass_zero(s)) &&
             __any_sync(0xffffffffu, raise_references(s, factor));
    } else {
      const bool is_passed = follow_highest(s, factor, scale_log2);
      subtract_bases(s, scale_log2);
      return is_passed;
    }
  }

  // Sums that AddsUp leaves out come from elsewhere.
  template <bool AddsUp = true, int Scores>
  __device__ __forceinline__ void to_probabilities(float (&s)[RowBlocks][Scores]) {
    // In the order in which the second product takes them: 16 keys of all row blocks.
#pragma unroll
    for (int i = 0; i < RowBlocks * Scores; ++i) {
      const int block = i / 8 % RowBlocks, half = i % 4 / 2;
      float& x = s[block][i / (8 * RowBlocks) * 8 + i % 8];
      x = exp2_approx(x);
      if (AddsUp)
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
  __device__ __forceinline__ void follow(const float (&to)[RowBlocks][2],
                                         float (&factor)[RowBlocks][2]) {
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      const int block = i / 2, half = i % 2;
      factor[block][half] = rescale_factor(reference[block][half], to[block][half]);
      reference[block][half] = to[block][half];
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
  // Takes higher references where a score would pass the slack.
  template <int Scores>
  __device__ __forceinline__ bool follow_highest(const float (&s)[RowBlocks][Scores],
                                                 float (&factor)[RowBlocks][2], float scale_log2) {
    float to[RowBlocks][2];
    bool is_passed = false;
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      to[i / 2][i % 2] = quad_max(lane_max(s[i / 2], i % 2)) * scale_log2;
      is_passed |= to[i / 2][i % 2] > reference[i / 2][i % 2] + kSlack;
    }
    is_passed = __any_sync(0xffffffffu, is_passed);
    if (is_passed) {
#pragma unroll
      for (int i = 0; i < 2 * RowBlocks; ++i)
        to[i / 2][i % 2] = fmaxf(reference[i / 2][i % 2], to[i / 2][i % 2]);
      follow(to, factor);
    }
    return is_passed;
  }

  // Whether an exponent of any lane is at least 0, from the signs.
  template <int Scores>
  __device__ __forceinline__ static bool pass_zero(const float (&exponents)[RowBlocks][Scores]) {
    unsigned signs[4] = {~0u, ~0u, ~0u, ~0u};
#pragma unroll
    for (int i = 0; i < RowBlocks * Scores; ++i)
      signs[i / 2 % 4] &= __float_as_uint(exponents[i / Scores][i % Scores]);
    const unsigned sign = signs[0] & signs[1] & signs[2] & signs[3];
    return __any_sync(0xffffffffu, static_cast<int>(sign) >= 0);
  }

  // Takes references that leave exponents room. Those of rows without one are relative to 0, and
  // have no older outputs. Whether one of this lane's rose.
  template <int Scores>
  __device__ __forceinline__ bool raise_references(float (&exponents)[RowBlocks][Scores],
                                                   float (&factor)[RowBlocks][2]) {
    bool have = true, is_raised = false;
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i) {
      const int block = i / 2, half = i % 2;
      float& from = reference[block][half];
      const bool has_one = from != minus_infinity();
      const float best = quad_max(lane_max(exponents[block], half)) + kRoom;
      const float rise = has_one ? fmaxf(best, 0.0f) : best;
      factor[block][half] = has_one ? exp2_approx(-rise) : 1.0f;
      is_raised |= has_one && rise > 0;
      from = base(block, half) + rise;
      have &= from != minus_infinity();
      sum[block][half] *= factor[block][half];
      const float subtrahend = fmaxf(rise, -kHighest);  // -inf - -inf would be NaN
#pragma unroll
      for (int n = 0; n < Scores / 4; ++n) {
        exponents[block][4 * n + 2 * half] -= subtrahend;
        exponents[block][4 * n + 2 * half + 1] -= subtrahend;
      }
    }
    have_references = __all_sync(0xffffffffu, have);
    return is_raised;
  }

  template <int Scores>
  __device__ __forceinline__ void subtract_bases(float (&s)[RowBlocks][Scores],
                                                 float scale_log2) const {
    float bases[RowBlocks][2];
#pragma unroll
    for (int i = 0; i < 2 * RowBlocks; ++i)
      bases[i / 2][i % 2] = base(i / 2, i % 2);
#pragma unroll
    for (int i = 0; i < RowBlocks * Scores; ++i) {
      float& x = s[i / Scores][i % Scores];
      x = fmaf(x, scale_log2, -bases[i / Scores][i % 4 / 2]);
    }
  }
};

// The logarithm of the sum of exponentials of a row; -inf where it saw no key.
__device__ __forceinline__ float log_sum(float reference, float sum) {
  constexpr float kLn2 = 0.6931471805599453f;
  return sum > 0 ? (reference + log2f(sum)) * kLn2 : minus_infinity();
}

// Of a row block, `valid` of whose rows exist.
__device__ __forceinline__ void write_log_sums(float* lse, const float (&reference)[2],
                                               const float (&sum)[2], int valid, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    if (lane % 4 == 0 && row < valid)
      lse[row] = log_sum(reference[half], sum[half]);
  }
}

// Hands a part of rows, over some of their keys, from one thread to another through shared memory:
// the same thread of a group of `Threads`. Float n of a thread lies at n * Threads + thread.
template <int Threads, int RowBlocks, bool FromSigns, int Outputs>
__device__ __forceinline__ void leave_part(float* part,
                                           const SoftmaxRows<RowBlocks, FromSigns>& rows,
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
template <int Threads, int RowBlocks, bool FromSigns, int Outputs>
__device__ __forceinline__ void add_part(const float* part, SoftmaxRows<RowBlocks, FromSigns>& rows,
                                         float (&o)[RowBlocks][Outputs], int thread) {
  float best[RowBlocks][2], factor[RowBlocks][2], own_factor[RowBlocks][2];
#pragma unroll
  for (int i = 0; i < 2 * RowBlocks; ++i) {
    const float reference = part[2 * i * Threads + thread];
    best[i / 2][i % 2] = fmaxf(rows.reference[i / 2][i % 2], reference);
    factor[i / 2][i % 2] = rescale_factor(reference, best[i / 2][i % 2]);
  }
  rows.follow(best, own_factor);
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

// Leaves a part by fours for whoever reads it: references and sums of a lane's two rows, then its
// outputs. Those of the lanes of a warp lie side by side, and `quads` are this lane's.
template <bool FromSigns, int Outputs>
__device__ __forceinline__ void leave_quads(float4* quads, const SoftmaxRows<1, FromSigns>& rows,
                                            const float (&outputs)[1][Outputs]) {
  quads[0] = {rows.reference[0][0], rows.sum[0][0], rows.reference[0][1], rows.sum[0][1]};
#pragma unroll
  for (int i = 0; i < Outputs / 4; ++i) {
    const float* const x = outputs[0] + 4 * i;
    quads[(i + 1) * 32] = {x[0], x[1], x[2], x[3]};
  }
}

// The sums of parts so left, AtOnce of them asked for at a time and in their order, so with the
// same bits every time: of outputs from quad `first` on. `quads_of(part)(i)` is quad i of this
// lane.
template <int AtOnce, bool FromSigns, int Outputs, typename QuadsOf>
__device__ __forceinline__ void take_quads(SoftmaxRows<1, FromSigns>& rows,
                                           float (&outputs)[1][Outputs], int parts, int first,
                                           const QuadsOf& quads_of) {
  constexpr int kQuads = Outputs / 4;
  rows.clear();
#pragma unroll
  for (float& output : outputs[0])
    output = 0;
#pragma unroll 1
  for (int part = 0; part < parts; part += AtOnce) {
    float4 heads[AtOnce], x[AtOnce][kQuads];
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      // The last one is there in place of those that are not, without weight, so that a part that
      // is infinite may give NaN. No branch, into which the compiler would move the loads.
      const auto quads = quads_of(min(part + i, parts - 1));
      heads[i] = quads(0);
#pragma unroll
      for (int j = 0; j < kQuads; ++j)
        x[i][j] = quads(1 + first + j);
      if (i > 0 && part + i >= parts)
        heads[i].x = heads[i].z = minus_infinity();
    }
    float best[1][2] = {{rows.reference[0][0], rows.reference[0][1]}}, factor[1][2];
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      best[0][0] = fmaxf(best[0][0], heads[i].x);
      best[0][1] = fmaxf(best[0][1], heads[i].z);
    }
    rows.follow(best, factor);
    rows.scale_rows(outputs, factor);
    const float bases[2] = {rows.base(0, 0), rows.base(0, 1)};
#pragma unroll
    for (int i = 0; i < AtOnce; ++i) {
      const float of_first = exp2_approx(heads[i].x - bases[0]);
      const float of_second = exp2_approx(heads[i].z - bases[1]);
      rows.sum[0][0] += of_first * heads[i].y;
      rows.sum[0][1] += of_second * heads[i].w;
#pragma unroll
      for (int j = 0; j < kQuads; ++j) {
        float* const to = outputs[0] + 4 * j;
        to[0] += of_first * x[i][j].x;
        to[1] += of_first * x[i][j].y;
        to[2] += of_second * x[i][j].z;
        to[3] += of_second * x[i][j].w;
      }
    }
  }
}

}  // namespace stof
