// Conversions between storage types (half, nv_bfloat16, float) and the float that kernels compute
// in.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/pack.cuh"

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

}  // namespace stof
