#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// What the operations do to 64-bit integers and doubles. All are total;
// templates/device/expression.cuh says the same for kernels.
namespace stof::expr {

inline constexpr std::int64_t kIntMin = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kIntMax = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t bits_of(std::int64_t a) {
  return static_cast<std::uint64_t>(a);
}

constexpr std::int64_t integer_of(std::uint64_t bits) {
  return static_cast<std::int64_t>(bits);
}

constexpr std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return integer_of(bits_of(a) + bits_of(b));
}

constexpr std::int64_t wrap_subtract(std::int64_t a, std::int64_t b) {
  return integer_of(bits_of(a) - bits_of(b));
}

constexpr std::int64_t wrap_multiply(std::int64_t a, std::int64_t b) {
  return integer_of(bits_of(a) * bits_of(b));
}

constexpr std::int64_t wrap_negate(std::int64_t a) {
  return integer_of(0 - bits_of(a));
}

constexpr std::int64_t wrap_abs(std::int64_t a) {
  return a < 0 ? wrap_negate(a) : a;
}

constexpr bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

// Towards minus infinity; 0 where b is 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    return 0;
  }
  if (b == -1) {
    return wrap_negate(a);
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// a - b * floor_div(a, b), which has the sign of b; 0 where b is 0.
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) {
    return 0;
  }
  const std::int64_t remainder = a % b;
  return remainder != 0 && (a < 0) != (b < 0) ? remainder + b : remainder;
}

// Towards plus infinity; 0 where b is 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    return 0;
  }
  if (b == -1) {
    return wrap_negate(a);
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}

constexpr std::int64_t shift_left(std::int64_t a, std::int64_t count) {
  return integer_of(bits_of(a) << (count & 63));
}

constexpr std::int64_t shift_right(std::int64_t a, std::int64_t count) {
  return a >> (count & 63);
}

constexpr std::int64_t shift_right_logical(std::int64_t a, std::int64_t count) {
  return integer_of(bits_of(a) >> (count & 63));
}

// splitmix64: one step of the counter, then its finaliser.
inline constexpr std::uint64_t kMixStep = 0x9E3779B97F4A7C15u;
inline constexpr std::uint64_t kMixFirstFactor = 0xBF58476D1CE4E5B9u;
inline constexpr std::uint64_t kMixSecondFactor = 0x94D049BB133111EBu;

constexpr std::int64_t mix(std::int64_t a) {
  std::uint64_t x = bits_of(a) + kMixStep;
  x = (x ^ (x >> 30)) * kMixFirstFactor;
  x = (x ^ (x >> 27)) * kMixSecondFactor;
  return integer_of(x ^ (x >> 31));
}

inline constexpr int kDrawShift = 33;
inline constexpr int kKeepShift = 40;

// What hash(seed, a, b) >>> kKeepShift stays below for the fraction of all pairs.
inline std::int64_t keep_threshold(double fraction) {
  return static_cast<std::int64_t>(std::floor(fraction * 16777216.0));
}

// Towards zero; NaN gives 0, what is out of range the nearest end.
inline std::int64_t to_integer(double a) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (std::isnan(a)) {
    return 0;
  }
  if (a >= kTwoTo63) {
    return kIntMax;
  }
  return a < -kTwoTo63 ? kIntMin : static_cast<std::int64_t>(a);
}

inline double float_of(std::int64_t word) {
  return std::bit_cast<double>(word);
}

inline std::int64_t word_of(double value) {
  return std::bit_cast<std::int64_t>(value);
}

}  // namespace stof::expr
