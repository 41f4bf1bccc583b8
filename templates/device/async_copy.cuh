// Copies from global to shared memory that pass no register (sm_80 and newer).
#pragma once

namespace stof {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Asks for the line of an address that the kernel may need soon.
__device__ __forceinline__ void prefetch_l2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(global)));
}

// 16 bytes, both sides aligned to 16. Only the first `bytes` of them (0 to 16) are read, the rest
// becomes zero; with 0 the source is not touched.
__device__ __forceinline__ void cp_async_16(unsigned shared, const void* global, int bytes = 16) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void cp_async_16(void* shared, const void* global, int bytes = 16) {
  cp_async_16(shared_address(shared), global, bytes);
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `Pending` of this thread's latest groups are in flight; other threads see the
// data after a barrier.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace stof
