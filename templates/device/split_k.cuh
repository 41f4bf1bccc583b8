// Sums that several CTAs share: each leaves its part in global memory, and the one that arrives
// last adds them up, in the order of the parts and so with the same bits every time.
#pragma once

namespace stof {

// True in all threads of the CTA that is the last of `count` to call, which then sees what the
// others wrote before their calls. The counter must be zero before the first of them and is zero
// again after the last.
__device__ __forceinline__ bool arrives_last(unsigned* counter, unsigned count) {
  __threadfence();
  __syncthreads();
  const bool is_last = threadIdx.x == 0 && atomicInc(counter, count - 1) == count - 1;
  const bool last = __syncthreads_or(is_last) != 0;
  __threadfence();
  return last;
}

// What another CTA wrote at a place (a float or float4); zero is left there.
template <typename Part>
__device__ __forceinline__ Part take(Part* place) {
  const Part part = __ldcg(place);
  __stcg(place, Part{});
  return part;
}

// Leaves this CTA's sums in the workspace. False in all but the last of the `Parts` CTAs of a tile
// to do so, which gets the sums of all. The workspace holds a counter per tile, each filled up to
// 16 bytes, and then the parts; it is zero before and after.
template <int Parts, int Threads, int Count>
__device__ __forceinline__ bool add_parts(float (&sums)[Count][4], unsigned* workspace,
                                          long long tiles, long long tile, int part) {
  float4* parts = reinterpret_cast<float4*>(workspace + 4 * tiles) +
                  tile * Parts * Count * Threads + threadIdx.x;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    __stcg(parts + (part * Count + i) * Threads,
           make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  }
  if (!arrives_last(workspace + 4 * tile, Parts)) {
    return false;
  }
#pragma unroll
  for (int i = 0; i < 4 * Count; ++i) {
    sums[i / 4][i % 4] = 0.0f;
  }
#pragma unroll(Count* Parts <= 32 ? Parts : 1)
  for (int other = 0; other < Parts; ++other) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const float4 addend = take(parts + (other * Count + i) * Threads);
      sums[i][0] += addend.x;
      sums[i][1] += addend.y;
      sums[i][2] += addend.z;
      sums[i][3] += addend.w;
    }
  }
  return true;
}

}  // namespace stof
