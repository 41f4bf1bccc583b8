// Values in registers: -inf, and pairs of 16-bit floats, the first in the low half. The headers of
// CUDA, which take 15 ms to compile, are not in here: such values need but the names of their
// types.
#pragma once

struct __half;
struct __nv_bfloat16;
typedef struct __half half;
typedef struct __nv_bfloat16 nv_bfloat16;

namespace stof {

// NVRTC has no <math.h>.
__device__ __forceinline__ float minus_infinity() {
  return __int_as_float(0xff800000);
}

template <typename T>
__device__ __forceinline__ unsigned pack2(float low, float high);
template <>
__device__ __forceinline__ unsigned pack2<half>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
template <>
__device__ __forceinline__ unsigned pack2<nv_bfloat16>(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

template <typename T>
__device__ __forceinline__ float2 unpack2(unsigned packed);
template <>
__device__ __forceinline__ float2 unpack2<half>(unsigned packed) {
  float2 values;
  asm("{ .reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, "
      "high; }"
      : "=f"(values.x), "=f"(values.y)
      : "r"(packed));
  return values;
}
template <>
__device__ __forceinline__ float2 unpack2<nv_bfloat16>(unsigned packed) {
  return make_float2(__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u));
}

}  // namespace stof
