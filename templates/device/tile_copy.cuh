// Tiles of a matrix of 16-bit elements from global to shared memory, by cp.async (sm_80 and newer).
#pragma once

#include "device/async_copy.cuh"
#include "device/mma.cuh"

namespace stof {

// Starts the copies of one of `Threads` threads of a tile of Rows x Columns elements, swizzled, of
// which `rows` x `columns` exist; the rest becomes zero. `source` is the thread's first chunk of 8
// elements, in row thread / (Columns / 8) and chunk thread % (Columns / 8), and `stride` the
// distance between rows.
template <int Rows, int Columns, int Threads, bool AllColumnsExist, typename T>
__device__ __forceinline__ void copy_tile(unsigned tile, const T* source, long long stride,
                                          int rows, int columns, int thread = int(threadIdx.x)) {
  constexpr int kChunks = Columns / 8;
  constexpr int kRowsPerPass = Threads / kChunks;
  const int chunk = thread % kChunks;
  const int first_row = thread / kChunks;
  const unsigned first = tile + swizzled_offset<2 * Columns>(
                                    first_row, chunk);  // eight rows on, the swizzle is the same
  const int chunk_bytes = AllColumnsExist ? 16 : min(max(2 * (columns - 8 * chunk), 0), 16);
#pragma unroll
  for (int row = 0; row < Rows; row += kRowsPerPass) {
    if (Rows % kRowsPerPass == 0 || first_row + row < Rows) {
      const int bytes = first_row + row < rows ? chunk_bytes : 0;
      const unsigned target = kRowsPerPass % 8 == 0
                                  ? first + row * 2 * Columns
                                  : tile + swizzled_offset<2 * Columns>(first_row + row, chunk);
      cp_async_16(target, source, bytes);
    }
    source += kRowsPerPass * stride;
  }
}

}  // namespace stof
