// Casts between the dtypes of tensors: floats round to nearest even, to an integer towards zero and
// to the nearest end of its range, NaN to 0; to bool, x != 0.
#pragma once

#include "device/numeric.cuh"

namespace stof {

template <typename T>
struct IsFloat {
  static constexpr bool kValue = false;
};
template <>
struct IsFloat<half> {
  static constexpr bool kValue = true;
};
template <>
struct IsFloat<nv_bfloat16> {
  static constexpr bool kValue = true;
};
template <>
struct IsFloat<float> {
  static constexpr bool kValue = true;
};

template <typename A, typename B>
constexpr bool kIsSame = false;
template <typename A>
constexpr bool kIsSame<A, A> = true;

template <typename To, typename From>
__device__ __forceinline__ To convert(From value) {
  constexpr long long kLeast = kIsSame<To, unsigned char> ? 0 : -2147483647LL - 1;
  constexpr long long kMost = kIsSame<To, unsigned char> ? 255 : 2147483647LL;
  if constexpr (kIsSame<To, From>) {
    return value;
  } else if constexpr (kIsSame<To, bool>) {
    if constexpr (IsFloat<From>::kValue) {
      return to_float(value) != 0.0f;
    } else {
      return value != 0;
    }
  } else if constexpr (IsFloat<From>::kValue && IsFloat<To>::kValue) {
    return from_float<To>(to_float(value));
  } else if constexpr (IsFloat<To>::kValue) {
    return from_float<To>(static_cast<float>(value));
  } else if constexpr (IsFloat<From>::kValue) {
    return convert<To>(isnan(to_float(value)) ? 0LL : __float2ll_rz(to_float(value)));
  } else if constexpr (sizeof(To) == sizeof(long long)) {
    return value;
  } else {
    return static_cast<To>(min(max(static_cast<long long>(value), kLeast), kMost));
  }
}

}  // namespace stof
