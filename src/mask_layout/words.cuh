// What programs do to 64-bit words that takes more than an operator on a GPU.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "expr/semantics.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// An integer, a truth value as 0 or 1, or the bits of a double.
using Word = std::int64_t;

__device__ inline double as_float(Word word) {
  return __longlong_as_double(word);
}
__device__ inline Word as_word(double value) {
  return __double_as_longlong(value);
}

// Division of 64 bits takes ten times that of 32, which positions fit.
__device__ inline bool fit_32_bits(Word a, Word b) {
  return a == static_cast<int>(a) && b == static_cast<int>(b) && b > 0;
}

__device__ __noinline__ inline Word divide_wide(Word a, Word b) {
  return expr::floor_div(a, b);
}
__device__ __noinline__ inline Word modulo_wide(Word a, Word b) {
  return expr::floor_mod(a, b);
}
__device__ __noinline__ inline Word ceil_div_wide(Word a, Word b) {
  return expr::ceil_div(a, b);
}

__device__ inline Word divide(Word a, Word b) {
  if (!fit_32_bits(a, b)) {
    return divide_wide(a, b);
  }
  const int quotient = static_cast<int>(a) / static_cast<int>(b);
  return quotient - (quotient * static_cast<int>(b) > static_cast<int>(a));
}

__device__ inline Word modulo(Word a, Word b) {
  if (!fit_32_bits(a, b)) {
    return modulo_wide(a, b);
  }
  const int remainder = static_cast<int>(a) % static_cast<int>(b);
  return remainder < 0 ? remainder + static_cast<int>(b) : remainder;
}

// mix(a) >>> kKeepShift < limit, for limits up to 2^24: the last step of mix leaves these bits as
// they are, so that the upper half of its last product is enough.
__device__ inline bool is_kept(Word a, std::uint32_t limit) {
  auto x = expr::bits_of(a) + expr::kMixStep;
  x = (x ^ (x >> 30)) * expr::kMixFirstFactor;
  x = (x ^ (x >> 27)) * expr::kMixSecondFactor;
  return static_cast<std::uint32_t>(x >> expr::kKeepShift) < limit;
}

// Their code is long, and there once.
__device__ __noinline__ inline double exp_of(double a) {
  return ::exp(a);
}
__device__ __noinline__ inline double log_of(double a) {
  return ::log(a);
}
__device__ __noinline__ inline double tanh_of(double a) {
  return ::tanh(a);
}

__device__ inline Word to_integer(double a) {
  if (isnan(a)) {
    return 0;
  }
  return __double2ll_rz(a);  // saturates
}

__device__ inline Word element(const CaptureView& capture, std::int64_t at) {
  switch (capture.dtype) {
    case DType::Float16:
      return as_word(__half2float(static_cast<const __half*>(capture.data)[at]));
    case DType::BFloat16:
      return as_word(__bfloat162float(static_cast<const __nv_bfloat16*>(capture.data)[at]));
    case DType::Float32:
      return as_word(static_cast<const float*>(capture.data)[at]);
    case DType::Int32:
      return static_cast<const std::int32_t*>(capture.data)[at];
    case DType::Int64:
      return static_cast<const std::int64_t*>(capture.data)[at];
    case DType::Bool:
      return static_cast<const std::uint8_t*>(capture.data)[at] != 0;
    case DType::UInt8:
      break;
  }
  return static_cast<const std::uint8_t*>(capture.data)[at];
}

}  // namespace stof::mask_layout
