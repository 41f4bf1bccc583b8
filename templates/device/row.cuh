// A row of a matrix in the registers of the threads that work on it, and sums and maxima over these
// threads.
#pragma once

#include "device/vector.cuh"

namespace stof {

// Hidden elements among Threads threads, in vectors of Vector neighbours that the threads take in
// turn. Hidden is a multiple of Vector, and rows in memory are aligned to what Vector elements
// need. What does not exist counts as 0.
template <int Hidden, int Threads, int Vector>
struct Row {
  static constexpr int kVectors = Hidden / Vector;
  static constexpr int kSteps = (kVectors + Threads - 1) / Threads;

  float values[kSteps][Vector];

  __device__ __forceinline__ static int column(int step, int thread) {
    return (step * Threads + thread) * Vector;
  }

  __device__ __forceinline__ static bool exists(int column) {
    return kVectors % Threads == 0 || column < Hidden;
  }

  // This thread's elements of a row as they are in memory; those that do not exist stay as they
  // are.
  template <typename T>
  __device__ __forceinline__ static void load_raw(T (&elements)[kSteps][Vector], const T* row,
                                                  int thread) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (exists(column(step, thread))) {
        load_elements(elements[step], row + column(step, thread));
      }
    }
  }

  template <typename T>
  __device__ __forceinline__ void load(const T* row, int thread) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < Vector; ++i) {
        values[step][i] = 0.0f;
      }
      if (exists(column(step, thread))) {
        load_floats(values[step], row + column(step, thread));
      }
    }
  }

  __device__ __forceinline__ void add(const Row& other) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < Vector; ++i) {
        values[step][i] += other.values[step][i];
      }
    }
  }

  template <typename T>
  __device__ __forceinline__ void store(T* row, int thread) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (exists(column(step, thread))) {
        store_floats(row + column(step, thread), values[step]);
      }
    }
  }

  // Calls function(value) for each value that exists.
  template <typename Function>
  __device__ __forceinline__ void for_each(int thread, Function function) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (exists(column(step, thread))) {
#pragma unroll
        for (int i = 0; i < Vector; ++i) {
          function(values[step][i]);
        }
      }
    }
  }
};

struct Add {
  __device__ __forceinline__ static float combine(float a, float b) { return a + b; }
};

// NaN if either is.
struct Maximum {
  __device__ __forceinline__ static float combine(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
};

// Combines N values at once over groups of Threads neighbouring threads of a block, a power of two;
// each of them gets the result. `scratch` holds N floats for each warp of the block, and serves one
// call; with groups inside a warp it is not touched.
template <int Threads, typename Operation, int N>
__device__ __forceinline__ void reduce_over_threads(float (&values)[N], float* scratch) {
#pragma unroll
  for (int lanes = min(Threads, 32) / 2; lanes > 0; lanes /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = Operation::combine(values[i], __shfl_xor_sync(0xffffffffu, values[i], lanes));
    }
  }
  if constexpr (Threads > 32) {
    constexpr int kWarps = Threads / 32;
    const int warp = int(threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        scratch[warp * N + i] = values[i];
      }
    }
    __syncthreads();
    const float* of_group = scratch + warp / kWarps * kWarps * N;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      values[i] = of_group[i];
#pragma unroll
      for (int other = 1; other < kWarps; ++other) {
        values[i] = Operation::combine(values[i], of_group[other * N + i]);
      }
    }
  }
}

template <int Threads, typename Operation>
__device__ __forceinline__ float reduce_over_threads(float value, float* scratch) {
  float values[1] = {value};
  reduce_over_threads<Threads, Operation>(values, scratch);
  return values[0];
}

}  // namespace stof
