// Moments of rows of x, from the tiles of it that go through the ring of a product (sm_90).
#pragma once

#include "device/mma.cuh"
#include "device/pack.cuh"

namespace stof {

// Of the 16 rows that a consumer warp has: two lanes have a row, and each half of every 64 columns
// of it. Parts of 16 columns are put together one after another, so that neither a large mean nor a
// large element costs digits of the others.
template <typename T, bool IsCentred>
struct TileMoments {
  static constexpr int kPart = 16;

  float mean = 0.0f;
  float squares = 0.0f;  // of the distances from the mean
  float parts = 0.0f;

  // The next 64 columns: `tile` has the 64 rows of the warp's group in shared memory.
  __device__ __forceinline__ void add(unsigned tile) {
    const int lane = int(threadIdx.x) % 32;
    const int row = int(threadIdx.x) / 32 % 4 * 16 + lane / 2;
#pragma unroll
    for (int chunk = 0; chunk < 4; chunk += 2) {
      float values[kPart];
      read_chunk(values, tile + swizzled_offset<128>(row, lane % 2 * 4 + chunk));
      read_chunk(values + 8, tile + swizzled_offset<128>(row, lane % 2 * 4 + chunk + 1));
      add_part(values);
    }
  }

  // With the other half of the row, of so many columns in all. Both lanes then have the same.
  __device__ __forceinline__ void add_other_half(float columns) {
    const float other = __shfl_xor_sync(0xffffffffu, mean, 1);
    const float distance = other - mean;
    squares += __shfl_xor_sync(0xffffffffu, squares, 1) + distance * distance * columns / 4;
    mean = (mean + other) / 2;
  }

 private:
  __device__ __forceinline__ static void read_chunk(float* values, unsigned from) {
    unsigned pairs[4];
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(from)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = unpack2<T>(pairs[i]);
      values[2 * i] = pair.x;
      values[2 * i + 1] = pair.y;
    }
  }

  __device__ __forceinline__ void add_part(const float (&values)[kPart]) {
    float centre = 0.0f;
    if constexpr (IsCentred) {
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        centre += values[i];
      }
      centre /= kPart;
      const float distance = centre - mean;
      const float share = __fdividef(1.0f, parts + 1.0f);
      mean = fmaf(distance, share, mean);
      squares = fmaf(distance * distance, kPart * parts * share, squares);
      parts += 1.0f;
    }
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      const float distance = values[i] - centre;
      squares = fmaf(distance, distance, squares);
    }
  }
};

}  // namespace stof
