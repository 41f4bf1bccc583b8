// N neighbouring elements at once, between memory and float registers.
#pragma once

#include "device/numeric.cuh"

namespace stof {

template <int Bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = unsigned char;
};
template <>
struct WordOf<2> {
  using Type = unsigned short;
};
template <>
struct WordOf<4> {
  using Type = unsigned;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};

// How N elements of T move: in words of at most 16 bytes.
template <typename T, int N>
struct Words {
  static constexpr int kWordBytes = N * int(sizeof(T)) < 16 ? N * int(sizeof(T)) : 16;
  static constexpr int kCount = N * int(sizeof(T)) / kWordBytes;
  using Word = typename WordOf<kWordBytes>::Type;
};

template <typename T, int N>
__device__ __forceinline__ bool is_aligned(const T* pointer) {
  return reinterpret_cast<unsigned long long>(pointer) % Words<T, N>::kWordBytes == 0;
}

// The pointer is aligned to min(16, N * sizeof(T)) bytes.
template <int N, typename T>
__device__ __forceinline__ void load_elements(T (&elements)[N], const T* pointer) {
  using W = Words<T, N>;
  typename W::Word words[W::kCount];
#pragma unroll
  for (int i = 0; i < W::kCount; ++i) {
    words[i] = reinterpret_cast<const typename W::Word*>(pointer)[i];
  }
  memcpy(elements, words, sizeof(elements));
}

template <int N, typename T>
__device__ __forceinline__ void store_elements(T* pointer, const T (&elements)[N]) {
  using W = Words<T, N>;
  typename W::Word words[W::kCount];
  memcpy(words, elements, sizeof(elements));
#pragma unroll
  for (int i = 0; i < W::kCount; ++i) {
    reinterpret_cast<typename W::Word*>(pointer)[i] = words[i];
  }
}

template <int N, typename T>
__device__ __forceinline__ void load_floats(float (&values)[N], const T* pointer) {
  T elements[N];
  load_elements(elements, pointer);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    values[i] = to_float(elements[i]);
  }
}

template <int N, typename T>
__device__ __forceinline__ void store_floats(T* pointer, const float (&values)[N]) {
  T elements[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    elements[i] = from_float<T>(values[i]);
  }
  store_elements(pointer, elements);
}

// A choice between two pieces of code, as a value: decltype(truth)::kValue.
template <bool Value>
struct Truth {
  static constexpr bool kValue = Value;
};

// Two neighbours that are aligned, or that need not be.
template <bool Aligned, typename T>
__device__ __forceinline__ void load_pair(float (&values)[2], const T* pointer) {
  if constexpr (Aligned) {
    load_floats(values, pointer);
  } else {
    values[0] = to_float(pointer[0]);
    values[1] = to_float(pointer[1]);
  }
}

template <typename T>
__device__ __forceinline__ void add_pair(float (&values)[2], const T* pointer) {
  float addends[2];
  load_pair<true>(addends, pointer);
  values[0] += addends[0];
  values[1] += addends[1];
}

// As above, at any address and distance: what is not aligned neighbours moves one by one.
template <int N, typename T>
__device__ __forceinline__ void load_elements_anywhere(T (&elements)[N], const T* pointer,
                                                       long long stride = 1) {
  if (stride == 1 && is_aligned<T, N>(pointer)) {
    load_elements(elements, pointer);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      elements[i] = pointer[i * stride];
    }
  }
}

template <int N, typename T>
__device__ __forceinline__ void store_elements_anywhere(T* pointer, const T (&elements)[N],
                                                        long long stride = 1) {
  if (stride == 1 && is_aligned<T, N>(pointer)) {
    store_elements(pointer, elements);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      pointer[i * stride] = elements[i];
    }
  }
}

template <int N, typename T>
__device__ __forceinline__ void store_floats_anywhere(T* pointer, const float (&values)[N]) {
  T elements[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    elements[i] = from_float<T>(values[i]);
  }
  store_elements_anywhere(pointer, elements);
}

template <int N, typename T>
__device__ __forceinline__ void load_floats_anywhere(float (&values)[N], const T* pointer) {
  T elements[N];
  load_elements_anywhere(elements, pointer);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    values[i] = to_float(elements[i]);
  }
}

}  // namespace stof
