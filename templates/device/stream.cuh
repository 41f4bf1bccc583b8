// Loads of data that is read once, such as the weights of a product with few rows or what an
// epilogue adds.
#pragma once

#include "device/pack.cuh"

namespace stof {

// 16 bytes, aligned, that do not displace others from the L1 cache.
template <typename T>
__device__ __forceinline__ uint4 load_once(const T* pointer) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(__cvta_generic_to_global(pointer)));
  return words;
}

// So many strides further on. One of less than 2^32 bytes may be unsigned: a multiplication and an
// addition of addresses are one instruction then.
template <typename T, typename Stride>
__device__ __forceinline__ const T* strides_on(const T* pointer, int count, Stride bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(pointer) +
                                    static_cast<unsigned long long>(unsigned(count)) * bytes);
}

// The eight 16-bit elements of 16 bytes as floats.
template <typename T>
__device__ __forceinline__ void unpack8(float (&values)[8], uint4 words) {
  const unsigned pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = unpack2<T>(pairs[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

// Has the CTA ask for a tile of Rows x Columns elements to be brought to the L2 cache; `rows` x
// `columns` of it exist.
template <int Rows, int Columns, int Threads, typename T>
__device__ __forceinline__ void prefetch_tile(const T* tile, long long stride, int rows,
                                              int columns) {
  constexpr int kLine = 128 / int(sizeof(T));
  constexpr int kLines = (Columns + kLine - 1) / kLine;
  for (int i = int(threadIdx.x); i < Rows * kLines; i += Threads) {
    if (i / kLines < rows && i % kLines * kLine < columns) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(
          __cvta_generic_to_global(tile + i / kLines * stride + i % kLines * kLine)));
    }
  }
}

}  // namespace stof
