// Kernels whose resources are known by what they do.

__noinline__ __device__ float pick(float x, int n) {
  float table[16];
  for (int i = 0; i < 16; ++i) {
    table[i] = x * i;
  }
  return table[n & 15];
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void shares(float* data) {
  __shared__ float tile[512];
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[511 - threadIdx.x];
}

// 160 live values in the 64 registers that 1024 threads leave.
extern "C" __global__ void __launch_bounds__(1024) spills(float* data, int stride) {
  float value[160];
#pragma unroll
  for (int i = 0; i < 160; ++i) {
    value[i] = data[i * 3];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 160; ++i) {
    data[i * stride] = 3 * value[i] + value[(i * 7 + 1) % 160];
  }
}

extern "C" __global__ void calls(float* data, int n) {
  data[0] = pick(data[1], n);
}

template <int N>
__global__ void scale(float* data) {
  data[threadIdx.x] *= N;
}
