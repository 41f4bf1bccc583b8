// Rows of a matrix in shared memory, as attention reads them with ldmatrix.
#pragma once

#include "device/async_copy.cuh"
#include "device/pack.cuh"

namespace stof {

// Rows of `Columns` 16-bit elements, in chunks of 16 bytes. Columns are padded with zeros to a
// multiple of 16, the depth of one mma. The pitch is an odd number of chunks: eight rows then lie
// in different banks at any chunk, and every address is a lane's base plus a constant.
template <int Columns>
struct PaddedRows {
  static constexpr int kColumns = (Columns + 15) / 16 * 16;
  static constexpr int kChunks = kColumns / 8;
  static constexpr int kPitch = (kChunks + 1) * 16;  // bytes
};

// Starts to copy `Rows` rows by a group of `Threads` threads. Rows from `valid` on become zero:
// what hangs over the end may be anything, and 0 * NaN would spoil the sums.
template <typename T, int Rows, int Columns, int Threads, int Pitch = PaddedRows<Columns>::kPitch>
__device__ __forceinline__ void copy_rows_async(unsigned shared, const T* rows, long long stride,
                                                int valid, int thread) {
  constexpr int kChunks = PaddedRows<Columns>::kChunks;
  if constexpr (Threads % kChunks == 0) {
    constexpr int kRowsAtOnce = Threads / kChunks;
    const int chunk = thread % kChunks;
    int row = thread / kChunks;
    const T* source = rows + row * stride + chunk * 8;
    shared += row * Pitch + chunk * 16;
#pragma unroll
    for (int first = 0; first < Rows;
         first += kRowsAtOnce, row += kRowsAtOnce, source += kRowsAtOnce * stride) {
      if (Rows % kRowsAtOnce != 0 && row >= Rows)
        break;
      cp_async_16(shared + first * Pitch, source, row < valid && chunk * 8 < Columns ? 16 : 0);
    }
  } else {
#pragma unroll
    for (int first = 0; first < Rows * kChunks; first += Threads) {
      const int row = (first + thread) / kChunks, chunk = (first + thread) % kChunks;
      if (Rows * kChunks % Threads != 0 && row >= Rows)
        break;
      cp_async_16(shared + row * Pitch + chunk * 16, rows + row * stride + chunk * 8,
                  row < valid && chunk * 8 < Columns ? 16 : 0);
    }
  }
}

// Where a lane reads: A fragments of rows (Q), and B fragments of rows that lie along the depth
// (V).
__device__ __forceinline__ unsigned row_fragment_offset(int pitch, int lane) {
  return lane % 16 * pitch + lane / 16 * 16;
}

// B fragments of rows that lie along the columns of the product (K).
__device__ __forceinline__ unsigned column_fragment_offset(int pitch, int lane) {
  return (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16;
}

// Writes an accumulator of 16 rows, `valid` of which exist, through 16 rows of shared memory that
// are the warp's own: so that it goes out 16 bytes a lane.
template <typename T, int Columns, int Pitch, int Count>
__device__ __forceinline__ void write_rows(T* rows, long long stride, const float (&x)[Count],
                                           unsigned char* shared, int valid, int lane) {
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) {
    const int row = lane / 4 + i % 2 * 8, column = i / 2 * 8 + lane % 4 * 2;
    *reinterpret_cast<unsigned*>(shared + row * Pitch + column * 2) =
        pack2<T>(x[2 * i], x[2 * i + 1]);
  }
  __syncwarp();
#pragma unroll
  for (int first = 0; first < 16 * Columns / 8; first += 32) {
    const int row = (first + lane) / (Columns / 8), chunk = (first + lane) % (Columns / 8);
    if (row < min(valid, 16)) {
      *reinterpret_cast<uint4*>(rows + row * stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared + row * Pitch + chunk * 16);
    }
  }
}

}  // namespace stof
