// A second or more of work, in kernels of ordinary size.

template <int kSeed>
__global__ void slow(float* data) {
  float value[32];
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    value[i] = data[i * kSeed];
  }
#pragma unroll
  for (int round = 0; round < 8; ++round) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      value[i] = __sinf(value[i]) + value[(i + 1) % 32];
    }
  }
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    data[i] = value[i];
  }
}

#define STOF_FOUR(seed)                              \
  template __global__ void slow<(seed)>(float*);     \
  template __global__ void slow<(seed) + 1>(float*); \
  template __global__ void slow<(seed) + 2>(float*); \
  template __global__ void slow<(seed) + 3>(float*)
#define STOF_SIXTEEN(seed) \
  STOF_FOUR(seed);         \
  STOF_FOUR((seed) + 4);   \
  STOF_FOUR((seed) + 8);   \
  STOF_FOUR((seed) + 12)

STOF_SIXTEEN(1);
STOF_SIXTEEN(17);
STOF_SIXTEEN(33);
STOF_SIXTEEN(49);
