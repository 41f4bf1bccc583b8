// What surrounds wgmma (sm_90a): operands in shared memory as panels of 64 elements (128 bytes) a
// row, swizzled as swizzled_offset<128> does, each panel aligned to 1024 bytes.
#pragma once

namespace stof {

// An operand whose rows run along k, eight rows being 1024 bytes. 16 further k are 32 bytes. This
// is the lower half of its descriptor; the other one is the same for all.
__device__ __forceinline__ unsigned k_major_operand(unsigned shared) {
  return (shared & 0x3ffffu) >> 4;  // in a cluster the bits above say whose it is
}
__device__ __forceinline__ unsigned long long descriptor(unsigned operand) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  constexpr unsigned long long kEightRows = 1024 >> 4;
  return operand | kEightRows << 32 | kSwizzle128;
}

// An operand whose rows lie along k, with 64 columns to a panel and `panel_bytes` from panel to
// panel. 16 further k are 2048 bytes.
__device__ __forceinline__ unsigned column_major_operand(unsigned shared, unsigned panel_bytes) {
  return k_major_operand(shared) | panel_bytes >> 4 << 16;
}

__device__ __forceinline__ unsigned advance(unsigned operand, int bytes) {
  return operand + (bytes >> 4);
}

// Makes what this thread wrote to shared memory, by cp.async too once it has waited for it, visible
// to wgmma after a barrier.
__device__ __forceinline__ void fence_for_wgmma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Before the first wgmma of a batch.
__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// A group of none: where others are waited for by their number, a loop without it would need two
// waits, and ptxas serializes products where one of them is in a branch.
__device__ __forceinline__ void wgmma_commit_none() {
  wgmma_begin();
  wgmma_commit();
}

template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// After wgmma_wait, on what has arrived by then: no use of it moves ahead of this.
template <int Rows, int Columns>
__device__ __forceinline__ void hold(float (&sums)[Rows][Columns]) {
#pragma unroll
  for (int i = 0; i < Rows * Columns; ++i) {
    asm volatile("" : "+f"(sums[i / Columns][i % Columns])::"memory");
  }
}

}  // namespace stof
