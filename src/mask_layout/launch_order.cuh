// Kernels of a build may start before the one ahead of them has ended, where the GPU can do that,
// so that what needs nothing of it is done meanwhile.
#pragma once

#include "cuda/check.hpp"
#include "cuda/library.hpp"

namespace stof::mask_layout {

// The next kernel may start, once all blocks have come here or ended.
__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// From here on all that kernels ahead have written is there.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The same, and the next kernel may start. Every thread calls it, before it reads or writes what
// other kernels do.
__device__ inline void await_previous() {
  let_next_start();
  wait_for_previous();
}

// The same for a kernel whose next one may run beside it: that starts when all blocks of this one
// have begun and waited, and waits for its end with wait_for_previous where it ends itself.
__device__ inline void await_previous_beside_next() {
  wait_for_previous();
  let_next_start();
}

// The major compute capability of the current GPU.
inline int capability() {
  int device = 0;
  int major = 0;
  STOF_CUDA(cudaGetDevice(&device));
  STOF_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return major;
}

// The launch of a kernel all of whose threads wait for the one ahead of it, of the same build or of
// another, before they read or write what other kernels do.
inline cuda::LaunchConfig behind(cuda::LaunchConfig config) {
  config.is_programmatic = capability() >= 9;
  return config;
}

}  // namespace stof::mask_layout
