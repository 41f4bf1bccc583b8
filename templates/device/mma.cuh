// Tensor-core fragments of one warp: ldmatrix and mma.m16n8k16 with float accumulators (sm_80 and
// newer).
//
// Lane l holds of the accumulator d[e]: row l / 4 + 8 * (e / 2), column 2 * (l % 4) + e % 2.
// Accumulators of two neighbouring 8-column blocks, packed in pairs in order, are the A fragment of
// a 16-deep step.
#pragma once

#include "device/pack.cuh"

namespace stof {

// Four 8x8 matrices of 16-bit elements; lanes 8 m to 8 m + 7 give the addresses of the rows of
// matrix m. With m = lane / 8:
//   A [row][k]:             row 8 * (m % 2) + lane % 8, 16-byte chunk m / 2 of the 16-deep step
//   B stored [column][k]:   column 8 * (m / 2) + lane % 8, chunk m % 2; gives b0, b1 of two
//   8-column blocks B stored [k][column], through the transposing form: k 8 * (m % 2) + lane % 8,
//   chunk m / 2; the same four
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], unsigned row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], unsigned row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}

// Byte offset of a 16-byte chunk of a row in a tile whose rows are `RowBytes` long: chunks are
// exchanged with the row number, so that the eight rows of an ldmatrix lie in different banks.
// RowBytes is 32, 64 or a multiple of 128.
template <int RowBytes>
__device__ __forceinline__ unsigned swizzled_offset(int row, int chunk) {
  constexpr int kRowsPerLine = RowBytes >= 128 ? 1 : 128 / RowBytes;
  constexpr int kChunks = RowBytes >= 128 ? 8 : RowBytes / 16;
  return row * RowBytes + ((chunk ^ ((row / kRowsPerLine) % kChunks)) * 16);
}

// d += a * b with half the depth: a is the first half of the A fragment.
template <typename T>
__device__ __forceinline__ void mma_m16n8k8(float* d, const unsigned (&a)[2], unsigned b);

template <>
__device__ __forceinline__ void mma_m16n8k8<half>(float* d, const unsigned (&a)[2], unsigned b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, "
      "%2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

template <>
__device__ __forceinline__ void mma_m16n8k8<nv_bfloat16>(float* d, const unsigned (&a)[2],
                                                         unsigned b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
      "%1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
}

// d += a * b. T is half or nv_bfloat16.
template <typename T>
__device__ __forceinline__ void mma_m16n8k16(float* d, const unsigned (&a)[4], unsigned b0,
                                             unsigned b1);

template <>
__device__ __forceinline__ void mma_m16n8k16<half>(float* d, const unsigned (&a)[4], unsigned b0,
                                                   unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<nv_bfloat16>(float* d, const unsigned (&a)[4],
                                                          unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace stof
