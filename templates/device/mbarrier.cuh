// Barriers in shared memory: threads arrive at one, and so do copies (those of bytes on sm_90).
#pragma once

namespace stof {

// By one thread, which then calls publish_barriers before the barrier of the block.
__device__ __forceinline__ void init_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

#if __CUDA_ARCH__ >= 900
// A barrier at which warps arrive, so many of them: one lane for all, which a __syncwarp() orders.
// racecheck of compute-sanitizer does not follow that; a test for it has all 32 arrive.
constexpr int kArrivalsOfWarp = 1;
__device__ __forceinline__ void init_barrier_of_warps(unsigned barrier, int warps) {
  init_barrier(barrier, warps * kArrivalsOfWarp);
}
__device__ __forceinline__ void arrive_of_warp(unsigned barrier) {
  __syncwarp();
  if (kArrivalsOfWarp > 1) {
    arrive(barrier);
    return;
  }
  asm volatile(
      "{ .reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "@p mbarrier.arrive.shared::cta.b64 _, [%0]; }" ::"r"(barrier)
      : "memory");
}
#endif

// Arrives when all copies are there that this thread has started with cp_async_16 by now.
__device__ __forceinline__ void arrive_with_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and has the phase wait for so many bytes as well.
__device__ __forceinline__ void arrive_expecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Returns when the phase of that parity is over: a new barrier is in phase 0, and the one before it
// counts as over.
__device__ __forceinline__ void wait_for_phase(unsigned barrier, unsigned parity) {
  unsigned is_over;
  do {
    asm volatile(
        "{ .reg .pred p;\n"
#if __CUDA_ARCH__ >= 900
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
#else
        "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
#endif
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(is_over)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (is_over == 0);
}

// A place in a ring of slots, each with a barrier: the parity changes with each turn of the ring.
template <int Slots>
struct RingPlace {
  unsigned slot = 0, parity = 0;

  __device__ __forceinline__ void advance() {
    if (Slots % 2 == 0 && (Slots & (Slots - 1)) == 0) {  // in fewer instructions
      const unsigned next = parity * Slots + slot + 1;
      slot = next % Slots;
      parity = next / Slots % 2;
      return;
    }
    slot = slot + 1 == Slots ? 0 : slot + 1;
    parity ^= slot == 0;
  }
};

}  // namespace stof
