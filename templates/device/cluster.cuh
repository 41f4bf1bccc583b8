// CTAs of a cluster (sm_90 and newer), which may read each other's shared memory.
#pragma once

#include "device/async_copy.cuh"

namespace stof {

// Waits for all threads of the cluster; what they wrote to shared memory before is there.
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// The same place in the shared memory of another CTA of the cluster.
template <typename T>
__device__ __forceinline__ T* place_in_cta(unsigned rank, T* place) {
  T* theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(place), "r"(rank));
  return theirs;
}

// Four floats at the same place of the shared memory of another CTA of the cluster.
__device__ __forceinline__ float4 load_from(unsigned rank, const float4* place) {
  float4 values;
  asm volatile(
      "{ .reg .u32 address; mapa.shared::cluster.u32 address, %4, %5;\n"
      "ld.shared::cluster.v4.f32 { %0, %1, %2, %3}, [address]; }"
      : "=f"(values.x), "=f"(values.y), "=f"(values.z), "=f"(values.w)
      : "r"(shared_address(place)), "r"(rank)
      : "memory");
  return values;
}

// The sum of what the CTAs of a cluster have at one place, in order of their ranks.
template <int Parts>
__device__ __forceinline__ float4 sum_in_cluster(const float4* place) {
  float4 parts[Parts];
#pragma unroll
  for (int other = 0; other < Parts; ++other) {
    parts[other] = load_from(other, place);
  }
  float4 sum = parts[0];
#pragma unroll
  for (int other = 1; other < Parts; ++other) {
    sum = make_float4(sum.x + parts[other].x, sum.y + parts[other].y, sum.z + parts[other].z,
                      sum.w + parts[other].w);
  }
  return sum;
}

// Adds up what the CTAs of a cluster have, in order of their ranks and so with the same bits every
// time. Each gets the sums of its share of the Count fours of a thread: `rank * Count / Parts` is
// the first. `places` is the same shared memory in each, of Count float4 for each thread.
template <int Parts, int Threads, int Count>
__device__ __forceinline__ void add_parts_in_cluster(float (&shares)[Count / Parts][4],
                                                     const float (&sums)[Count][4], float4* places,
                                                     unsigned rank) {
  constexpr int kShare = Count / Parts;
  if constexpr (Parts == 1) {
#pragma unroll
    for (int i = 0; i < 4 * Count; ++i) {
      shares[i / 4][i % 4] = sums[i / 4][i % 4];
    }
    return;
  }
  places += threadIdx.x;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    places[i * Threads] = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
  cluster_barrier();
#pragma unroll
  for (int i = 0; i < kShare; ++i) {
    const float4 sum = sum_in_cluster<Parts>(places + (int(rank) * kShare + i) * Threads);
    shares[i][0] = sum.x;
    shares[i][1] = sum.y;
    shares[i][2] = sum.z;
    shares[i][3] = sum.w;
  }
  cluster_barrier();  // shared memory goes with its CTA
}

}  // namespace stof
