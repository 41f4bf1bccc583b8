// A 64x8x16 product with each of the mistakes that ptxas speaks of, and one without.

__device__ unsigned long long describe(const void* shared) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffff) >> 4 | 1ull << 16 | 8ull << 32;
}

__device__ void fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ void multiply(float (&d)[4], const char* tiles) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(describe(tiles)), "l"(describe(tiles + 2048)));
}

__device__ void store(float* out, const float (&d)[4]) {
  for (int i = 0; i < 4; ++i) {
    out[threadIdx.x * 4 + i] = d[i];
  }
}

extern __shared__ char tiles[];

extern "C" __global__ void clean(float* out) {
  float d[4] = {};
  fence();
  multiply(d, tiles);
  commit();
  wait();
  store(out, d);
}

extern "C" __global__ void no_wait(float* out) {
  float d[4] = {};
  fence();
  multiply(d, tiles);
  commit();
  store(out, d);
}

extern "C" __global__ void no_fence(float* out) {
  float d[4] = {out[0], out[1], out[2], out[3]};
  multiply(d, tiles);
  commit();
  wait();
  store(out, d);
}

extern "C" __global__ void early_write(float* out, int n) {
  float d[4] = {};
  fence();
  for (int i = 0; i < n; ++i) {
    multiply(d, tiles);
    d[0] += 1;
  }
  commit();
  wait();
  store(out, d);
}

__noinline__ __device__ void far_multiply(float* out) {
  float d[4] = {};
  fence();
  multiply(d, tiles);
  commit();
  wait();
  store(out, d);
}

extern "C" __global__ void calls(float* out) {
  far_multiply(out);
  far_multiply(out + 512);
}

extern "C" __global__ void no_bounds(float* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  out[0] = 1;
}
