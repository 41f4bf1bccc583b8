// Attention of one query row by one warp, over a list of keys. A key belongs to a group of lanes,
// which hold 16 bytes of it each; a batch is 32 keys, one a lane.
#pragma once

#include "device/attention_softmax.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"

namespace stof {

constexpr int kHiddenKey = -1;

// How rows of `Columns` elements lie over the lanes of a warp. A batch passes in rounds, in which
// every group of lanes has one row; `Loads` rounds are in flight at a time.
template <typename T, int Columns, int Loads>
struct LaneRows {
  static constexpr int kVector = 16 / sizeof(T);  // elements a lane
  static constexpr int kVectors = Columns / kVector;
  static constexpr int kLanes = kVectors > 16  ? 32
                                : kVectors > 8 ? 16
                                : kVectors > 4 ? 8
                                : kVectors > 2 ? 4
                                               : kVectors;
  static constexpr int kGroups = 32 / kLanes;
  static constexpr int kRounds = kLanes;
  static constexpr int kLoads = kRounds < Loads ? kRounds : Loads;

  // The keys of a batch are dealt round by round, so that a batch with few of them takes few
  // rounds. This is the place in the batch of the key that a lane has to itself: that of its group
  // in round lane % kLanes.
  __device__ __forceinline__ static int place(int lane) {
    return lane % kLanes * kGroups + lane / kLanes;
  }
  // The lane that has the key at a place to itself.
  __device__ __forceinline__ static int owner(int place) {
    return place % kGroups * kLanes + place / kGroups;
  }

  __device__ __forceinline__ static uint4 load(const T* rows, long long stride, int row, int lane) {
    const int vector = lane % kLanes;
    if (row == kHiddenKey || vector >= kVectors)
      return make_uint4(0, 0, 0, 0);
    return __ldg(reinterpret_cast<const uint4*>(rows + row * stride) + vector);
  }
  // Rounds from `first` on. Owners are those of `KeyRows`.
  template <typename KeyRows>
  __device__ __forceinline__ static int owner_in_round(int round, int lane) {
    return KeyRows::owner(round * kGroups + lane / kLanes);
  }
  template <typename KeyRows>
  __device__ __forceinline__ static void load_rounds(uint4 (&loaded)[kLoads], const T* rows,
                                                     long long stride, int row, int first,
                                                     int lane) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int owner = owner_in_round<KeyRows>(first + i, lane);
      loaded[i] = load(rows, stride, __shfl_sync(0xffffffffu, row, owner), lane);
    }
  }
};

template <typename T, int N>
__device__ __forceinline__ void unpack(float (&values)[N], const uint4& loaded) {
  load_floats(values, reinterpret_cast<const T*>(&loaded));
}

// Adds up N values over groups of N lanes at once: lane i of a group gets the sum of value i. It
// takes N - 1 exchanges where sums one by one would take N log N.
template <int N>
__device__ __forceinline__ float transposed_sum(const float (&values)[N], int lane) {
  if constexpr (N == 1) {
    return values[0];
  } else {
    const bool is_upper = (lane & (N / 2)) != 0;
    float halves[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const float sent = is_upper ? values[i] : values[i + N / 2];
      const float kept = is_upper ? values[i + N / 2] : values[i];
      halves[i] = kept + __shfl_xor_sync(0xffffffffu, sent, N / 2);
    }
    return transposed_sum(halves, lane);
  }
}

// q times each of the first `count` keys of a batch; every lane gets the product of its own key.
template <typename Rows, typename T>
__device__ __forceinline__ float batch_scores(const float (&q)[Rows::kVector], const T* keys,
                                              long long stride, int key, int count, int lane) {
  float score = 0;
#pragma unroll
  for (int first = 0; first < Rows::kRounds; first += Rows::kLoads) {
    if (first * Rows::kGroups >= count)
      break;
    uint4 loaded[Rows::kLoads];
    Rows::template load_rounds<Rows>(loaded, keys, stride, key, first, lane);
    float products[Rows::kLoads];
#pragma unroll
    for (int i = 0; i < Rows::kLoads; ++i) {
      float values[Rows::kVector];
      unpack<T>(values, loaded[i]);
      products[i] = q[0] * values[0];
#pragma unroll
      for (int e = 1; e < Rows::kVector; ++e)
        products[i] = fmaf(q[e], values[e], products[i]);
    }
    float sum = transposed_sum(products, lane);
#pragma unroll
    for (int lanes = Rows::kLoads; lanes < Rows::kLanes; lanes *= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (lane % Rows::kLanes / Rows::kLoads == first / Rows::kLoads)
      score = sum;
  }
  return score;
}

// The state of a row: sums and outputs are relative to exp2(reference). Outputs are of this lane's
// columns and, like the sum, of this lane's keys.
template <typename T, int ValueDim, int Loads>
struct GatheredRow {
  using Rows = LaneRows<T, ValueDim, Loads>;

  float reference, sum;
  float o[Rows::kVector];

  __device__ __forceinline__ void clear() {
    reference = minus_infinity();
    sum = 0;
#pragma unroll
    for (float& x : o)
      x = 0;
  }

  __device__ __forceinline__ void follow(float to) {
    const float factor = rescale_factor(reference, to);
    reference = to;
    sum *= factor;
#pragma unroll
    for (float& x : o)
      x *= factor;
  }

  // The probability of a score in units of log 2.
  __device__ __forceinline__ float probability(float score) {
    const float best = fmaxf(reference, warp_max(score));
    if (best != reference)
      follow(best);
    const float p = best == minus_infinity() ? 0.0f : exp2_approx(score - best);
    sum += p;
    return p;
  }

  // Adds the values of the first `count` keys of a batch; the first rounds were loaded ahead.
  template <typename KeyRows>
  __device__ __forceinline__ void add_values(uint4 (&loaded)[Rows::kLoads], const T* values,
                                             long long stride, int key, float p, int count,
                                             int lane) {
#pragma unroll
    for (int first = 0; first < Rows::kRounds; first += Rows::kLoads) {
      if (first * Rows::kGroups >= count)
        break;
      if (first > 0)
        Rows::template load_rounds<KeyRows>(loaded, values, stride, key, first, lane);
#pragma unroll
      for (int i = 0; i < Rows::kLoads; ++i) {
        const int owner = Rows::template owner_in_round<KeyRows>(first + i, lane);
        const float weight = __shfl_sync(0xffffffffu, p, owner);
        float x[Rows::kVector];
        unpack<T>(x, loaded[i]);
#pragma unroll
        for (int e = 0; e < Rows::kVector; ++e)
          o[e] = fmaf(weight, x[e], o[e]);
      }
    }
  }

  // Sums over all keys, in every lane.
  __device__ __forceinline__ void add_lanes() {
    sum = warp_sum(sum);
#pragma unroll
    for (int lanes = Rows::kLanes; lanes < 32; lanes *= 2) {
#pragma unroll
      for (float& x : o)
        x += __shfl_xor_sync(0xffffffffu, x, lanes);
    }
  }

  // Adds a part of the same row that another warp left in shared memory.
  static constexpr int kFloats = ValueDim + 2;
  __device__ __forceinline__ void leave(float* place, int lane) const {
    if (lane == 0)
      place[0] = reference;
    if (lane == 1)
      place[1] = sum;
    if (lane < Rows::kVectors) {
#pragma unroll
      for (int e = 0; e < Rows::kVector; ++e)
        place[2 + lane * Rows::kVector + e] = o[e];
    }
  }
  __device__ __forceinline__ void merge(const float* place, int lane) {
    const float best = fmaxf(reference, place[0]);
    const float factor = rescale_factor(place[0], best);
    follow(best);
    sum += factor * place[1];
    const float* part = place + 2 + min(lane % Rows::kLanes, Rows::kVectors - 1) * Rows::kVector;
#pragma unroll
    for (int e = 0; e < Rows::kVector; ++e)
      o[e] += factor * part[e];
  }
};

}  // namespace stof
