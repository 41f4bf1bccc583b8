// Programmatic dependent launch: a kernel of a contract with "pdl" may start while the one before
// it still runs. NVRTC has no functions for it, so these are the instructions.
#pragma once

namespace stof {

// Returns when all that the kernels before this one wrote is there; nothing of theirs is read, and
// nothing is written, before.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start as soon as all blocks of this one have come here or are done. It may
// stand before this kernel's own wait: the next one waits for the end of this one, and with it for
// all before. Products and norms are faster that way (in a BERT or GPT-2 of 128 tokens by 1 and 4 %
// on H200), attention by bands is not (by 4 and 1 % slower). The GPU takes these calls one by one
// (1.25 ns each on H200), so that in a large grid only the last blocks make them: the others are
// done by then.
__device__ __forceinline__ void allow_next_kernel() {
#if __CUDA_ARCH__ >= 900
  constexpr unsigned kLastBlocks = 1024;
  if (gridDim.x - blockIdx.x <= kLastBlocks) {
    asm volatile("griddepcontrol.launch_dependents;");
  }
#endif
}

}  // namespace stof
