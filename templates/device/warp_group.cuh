// Groups of four warps that go different ways (sm_90).
#pragma once

namespace stof {

// Registers of each thread from here on, in multiples of 8, said by all warps of a group; those
// that take wait for those that give. The kernel needs both numbers of __launch_bounds__.
template <int Registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Waits for the threads of a warp group alone. A number that is no constant would take all
// barriers.
template <int Groups>
__device__ __forceinline__ void group_barrier(int group) {
  if constexpr (Groups > 1) {
    if (group < Groups - 1) {
      group_barrier<Groups - 1>(group);
      return;
    }
  }
  asm volatile("bar.sync %0, 128;" ::"n"(Groups) : "memory");
}

// Waits in the same way; whether it is so in any thread of the group.
template <int Groups>
__device__ __forceinline__ bool any_of_group(int group, bool is_so) {
  if constexpr (Groups > 1) {
    if (group < Groups - 1)
      return any_of_group<Groups - 1>(group, is_so);
  }
  unsigned is_any;
  asm volatile(
      "{ .reg .pred p, q;\n"
      "setp.ne.u32 p, %1, 0;\n"
      "barrier.cta.red.or.pred q, %2, 128, p;\n"
      "selp.u32 %0, 1, 0, q; }"
      : "=r"(is_any)
      : "r"(static_cast<unsigned>(is_so)), "n"(Groups)
      : "memory");
  return is_any != 0;
}

}  // namespace stof
