// From the registers of accumulators to panels in shared memory that TMA stores (sm_90).
#pragma once

#include "device/mma.cuh"
#include "device/pack.cuh"

namespace stof {

__device__ __forceinline__ void store_matrices(unsigned row_address, unsigned r0, unsigned r1,
                                               unsigned r2, unsigned r3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(r0), "r"(r1), "r"(r2), "r"(r3)
      : "memory");
}

// Leaves columns 16 * piece … of the 16 rows of a warp in a panel, as tensor maps take it; `rows`
// is where they begin.
template <typename T>
__device__ __forceinline__ void leave_columns(unsigned rows, const float* x, int piece, int lane) {
  store_matrices(rows + swizzled_offset<128>(lane % 16, piece * 2 + lane / 16),
                 pack2<T>(x[0], x[1]), pack2<T>(x[2], x[3]), pack2<T>(x[4], x[5]),
                 pack2<T>(x[6], x[7]));
}

// The same of all columns, in panels; `rows` is where they begin in the first one.
template <typename T, int PanelBytes, int Count>
__device__ __forceinline__ void leave_rows(unsigned rows, const float (&x)[Count], int lane) {
#pragma unroll
  for (int j = 0; j < Count / 8; ++j)
    leave_columns<T>(rows + j / 4 * PanelBytes, x + 8 * j, j % 4, lane);
}

}  // namespace stof
