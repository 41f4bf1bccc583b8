// From the registers of accumulators to panels in shared memory that TMA stores (sm_90).
#pragma once

#include "device/mma.cuh"
#include "device/numeric.cuh"

namespace stof {

__device__ __forceinline__ void store_matrices(unsigned row_address, unsigned r0, unsigned r1,
                                               unsigned r2, unsigned r3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(r0), "r"(r1), "r"(r2), "r"(r3)
      : "memory");
}

// Leaves the 16 rows of a warp in panels, as tensor maps take them; `rows` is where they begin in
// the first panel.
template <typename T, int PanelBytes, int Count>
__device__ __forceinline__ void leave_rows(unsigned rows, const float (&x)[Count], int lane) {
  const int row = lane % 16, chunk = lane / 16;
#pragma unroll
  for (int j = 0; j < Count / 8; ++j) {
    const float* e = x + 8 * j;
    store_matrices(rows + j / 4 * PanelBytes + swizzled_offset<128>(row, j % 4 * 2 + chunk),
                   pack2<T>(e[0], e[1]), pack2<T>(e[2], e[3]), pack2<T>(e[4], e[5]),
                   pack2<T>(e[6], e[7]));
  }
}

}  // namespace stof
