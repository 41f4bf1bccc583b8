// Conversions between storage types (half, nv_bfloat16, float) and the float that kernels compute
// in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace stof {

__device__ __forceinline__ float to_float(half value) {
  return __half2float(value);
}
__device__ __forceinline__ float to_float(nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ float to_float(float value) {
  return value;
}

template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ half from_float<half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ nv_bfloat16 from_float<nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

// NVRTC has no <math.h>.
__device__ __forceinline__ float minus_infinity() {
  return __int_as_float(0xff800000);
}

// Two 16-bit values in a register, the first in the low half.
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
  return __half22float2(*reinterpret_cast<const half2*>(&packed));
}
template <>
__device__ __forceinline__ float2 unpack2<nv_bfloat16>(unsigned packed) {
  return make_float2(__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000u));
}

}  // namespace stof
