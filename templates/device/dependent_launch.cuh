// Programmatic dependent launch: a kernel of a contract with "pdl" may start while the one before it
// still runs. NVRTC has no functions for it, so these are the instructions.
#pragma once

namespace stof {

// Returns when all that the kernels before this one wrote is there; nothing of theirs is read, and nothing is written, before.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start as soon as all blocks of this one have come here or are done.
__device__ __forceinline__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

}  // namespace stof
