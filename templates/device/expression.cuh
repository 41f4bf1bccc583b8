// The operations of the expression language that C++ lacks, or leaves undefined where their
// operands are extreme. Integers wrap at 64 bits; x / 0 is 0. A host compiler takes it as plain
// C++, so that tests need no GPU.
#pragma once

#ifdef __CUDACC__
#define STOF_DEVICE __device__ __forceinline__
#else
#define STOF_DEVICE inline
#endif

namespace stof {

using int64 = long long;
using uint64 = unsigned long long;

// A number that is linear in a key: `base`, which is the same for many keys, and `offset`, which is
// known when compiling but for factors. So s + slope * distance takes two operations a key, and
// the compiler has no products to work out ahead, which would take a register each. Their sum is
// off by at most 2^-15 of what it changes by from one key to the next, as offsets are below 192;
// so it may be so far from 0 where it would be 0.
struct KeyNumber {
  float base, offset;

  STOF_DEVICE operator float() const { return base + offset; }
  STOF_DEVICE KeyNumber operator-() const { return {-base, -offset}; }
  STOF_DEVICE friend KeyNumber operator+(const KeyNumber& a, const KeyNumber& b) {
    return {a.base + b.base, a.offset + b.offset};
  }
  STOF_DEVICE friend KeyNumber operator+(const KeyNumber& a, float b) {
    return {a.base + b, a.offset};
  }
  STOF_DEVICE friend KeyNumber operator+(float a, const KeyNumber& b) { return b + a; }
  STOF_DEVICE friend KeyNumber operator-(const KeyNumber& a, const KeyNumber& b) { return a + -b; }
  STOF_DEVICE friend KeyNumber operator-(const KeyNumber& a, float b) { return a + -b; }
  STOF_DEVICE friend KeyNumber operator-(float a, const KeyNumber& b) { return -b + a; }
  STOF_DEVICE friend KeyNumber operator*(const KeyNumber& a, float b) {
    return {a.base * b, a.offset * b};
  }
  STOF_DEVICE friend KeyNumber operator*(float a, const KeyNumber& b) { return b * a; }
};

// A key, as scores see it: an integer, of which `offset` is known when compiling and the rest is
// the same for many keys.
struct KeyPosition {
  int base, offset;

  STOF_DEVICE operator int() const { return base + offset; }
  STOF_DEVICE explicit operator int64() const { return base + offset; }
  STOF_DEVICE friend KeyPosition operator+(const KeyPosition& key, int by) {
    return {key.base + by, key.offset};
  }
  STOF_DEVICE friend KeyPosition operator-(const KeyPosition& key, int by) {
    return {key.base - by, key.offset};
  }
};

// An integer as a number of a score.
STOF_DEVICE KeyNumber score_number(const KeyPosition& key) {
  return {static_cast<float>(key.base), static_cast<float>(key.offset)};
}
STOF_DEVICE float score_number(int number) {
  return static_cast<float>(number);
}
STOF_DEVICE float score_number(int64 number) {
  return static_cast<float>(number);
}

STOF_DEVICE int64 wrap_add(int64 a, int64 b) {
  return static_cast<int64>(static_cast<uint64>(a) + static_cast<uint64>(b));
}

STOF_DEVICE int64 wrap_sub(int64 a, int64 b) {
  return static_cast<int64>(static_cast<uint64>(a) - static_cast<uint64>(b));
}

STOF_DEVICE int64 wrap_mul(int64 a, int64 b) {
  return static_cast<int64>(static_cast<uint64>(a) * static_cast<uint64>(b));
}

STOF_DEVICE int64 wrap_neg(int64 a) {
  return wrap_sub(0, a);
}

STOF_DEVICE int64 wrap_abs(int64 a) {
  return a < 0 ? wrap_neg(a) : a;
}

STOF_DEVICE int64 shift_left(int64 a, int64 count) {
  return static_cast<int64>(static_cast<uint64>(a) << (count & 63));
}

STOF_DEVICE int64 shift_right(int64 a, int64 count) {
  return a >> (count & 63);
}

STOF_DEVICE int64 shift_right_logical(int64 a, int64 count) {
  return static_cast<int64>(static_cast<uint64>(a) >> (count & 63));
}

// Quotient and remainder towards minus infinity, of a divisor that is neither 0 nor -1.
template <typename T>
STOF_DEVICE T floor_div_unchecked(T a, T b) {
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

template <typename T>
STOF_DEVICE T floor_mod_unchecked(T a, T b) {
  const T remainder = a % b;
  return remainder != 0 && (a < 0) != (b < 0) ? remainder + b : remainder;
}

// Any divisor: 0 gives 0, and the least integer over -1 wraps.
template <typename T>
STOF_DEVICE T floor_div(T a, T b) {
  if (b == 0 || b == -1) {
    return b == 0 ? T(0) : static_cast<T>(wrap_neg(a));
  }
  return floor_div_unchecked(a, b);
}

template <typename T>
STOF_DEVICE T floor_mod(T a, T b) {
  return b == 0 || b == -1 ? T(0) : floor_mod_unchecked(a, b);
}

template <typename T>
STOF_DEVICE T ceil_div(T a, T b) {
  if (b == 0 || b == -1) {
    return b == 0 ? T(0) : static_cast<T>(wrap_neg(a));
  }
  const T quotient = a / b;
  return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

template <typename T>
STOF_DEVICE T min_of(T a, T b) {
  return a < b ? a : b;
}

template <typename T>
STOF_DEVICE T max_of(T a, T b) {
  return a < b ? b : a;
}

template <typename T>
STOF_DEVICE T abs_of(T a) {
  return a < 0 ? -a : a;
}

template <typename T>
STOF_DEVICE T clamp_index(T index, T size) {
  return index < 0 ? T(0) : index < size ? index : size - 1;
}

// Towards zero; NaN gives 0, and what is out of range the nearest end.
STOF_DEVICE int64 to_int64(float a) {
  if (!(a >= -9223372036854775808.0f)) {
    return a < 0 ? -9223372036854775807LL - 1 : 0;
  }
  return a >= 9223372036854775808.0f ? 9223372036854775807LL : static_cast<int64>(a);
}

STOF_DEVICE float infinity() {
#ifdef __CUDACC__
  return __int_as_float(0x7f800000);
#else
  return __builtin_inff();
#endif
}

STOF_DEVICE float not_a_number() {
#ifdef __CUDACC__
  return __int_as_float(0x7fc00000);
#else
  return __builtin_nanf("");
#endif
}

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
STOF_DEVICE uint64 mix(uint64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

STOF_DEVICE int64 hash(int64 seed, int64 a, int64 b) {
  return static_cast<int64>(
      mix(mix(mix(static_cast<uint64>(seed)) ^ static_cast<uint64>(a)) ^ static_cast<uint64>(b)));
}

// What draw() takes the remainder of, and what keep() compares: hash >>> 33 and hash >>> 40.
STOF_DEVICE int draw_bits(int64 seed, int64 a, int64 b) {
  return static_cast<int>(static_cast<uint64>(hash(seed, a, b)) >> 33);
}

STOF_DEVICE int keep_bits(int64 seed, int64 a, int64 b) {
  return static_cast<int>(static_cast<uint64>(hash(seed, a, b)) >> 40);
}

}  // namespace stof
