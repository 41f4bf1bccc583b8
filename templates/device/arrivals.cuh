// Blocks of one launch that read what other blocks of it write. The writers have the lower numbers
// and wait for none: the GPU starts blocks in the order of their numbers, so that those that are
// waited for have room.
#pragma once

namespace stof {

// By all threads of a block, behind what it wrote. The counter is zero again when the last of
// `count` blocks, writers and readers, has called this or wait_for_arrivals.
__device__ __forceinline__ void arrive_at(unsigned* counter, unsigned count) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicInc(counter, count - 1);
  }
}

// Returns in all threads of a block when `writers` blocks have arrived, and what they wrote is
// there.
__device__ __forceinline__ void wait_for_arrivals(unsigned* counter, unsigned writers,
                                                  unsigned count) {
  if (threadIdx.x == 0) {
    unsigned arrived = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(counter) : "memory");
    } while (arrived < writers);
    atomicInc(counter, count - 1);
  }
  __syncthreads();
}

}  // namespace stof
