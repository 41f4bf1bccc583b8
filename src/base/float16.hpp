#pragma once

#include <bit>
#include <cstdint>

// The two 16-bit floats as bits. Every float is a double, so rounding from double serves both and
// rounds once; a NaN keeps its sign and the top of its payload, and becomes quiet.
namespace stof::base {

namespace detail {

// Rounds to nearest even into a sign, exponent and mantissa of the given widths; denormals and
// infinities as IEEE 754 has them.
template <int kExponentBits, int kMantissaBits>
constexpr std::uint16_t round_to_bits(double value) {
  constexpr int kDoubleMantissaBits = 52;
  constexpr int kDoubleBias = 1023;
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr int kMinExponent = 1 - kBias;
  constexpr std::uint16_t kInfinity = ((1 << kExponentBits) - 1) << kMantissaBits;
  constexpr std::uint16_t kQuiet = 1 << (kMantissaBits - 1);
  constexpr std::uint64_t kHidden = std::uint64_t{1} << kDoubleMantissaBits;

  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 63 << 15);
  const std::uint64_t fraction = bits & (kHidden - 1);
  const int exponent = static_cast<int>(bits >> kDoubleMantissaBits & 0x7ff) - kDoubleBias;
  if (exponent > kBias) {  // infinity, NaN, or above the largest number
    const bool is_nan = exponent == kDoubleBias + 1 && fraction != 0;
    const auto payload = static_cast<std::uint16_t>(
        is_nan ? kQuiet | fraction >> (kDoubleMantissaBits - kMantissaBits) : 0);
    return sign | kInfinity | payload;
  }
  if (exponent < kMinExponent - kMantissaBits - 1) {  // below half the smallest denormal
    return sign;
  }
  const int denormal_shift = exponent < kMinExponent ? kMinExponent - exponent : 0;
  const int shift = kDoubleMantissaBits - kMantissaBits + denormal_shift;
  const std::uint64_t significand = kHidden | fraction;
  const std::uint64_t dropped = significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  std::uint64_t kept = significand >> shift;
  kept += dropped > half || (dropped == half && (kept & 1) != 0) ? 1 : 0;
  // The hidden bit, and a carry out of the rounding, add one to the exponent field.
  const int exponent_field = exponent + denormal_shift - kMinExponent;
  return sign | static_cast<std::uint16_t>((exponent_field << kMantissaBits) + kept);
}

}  // namespace detail

struct Float16 {
  std::uint16_t bits = 0;

  static constexpr Float16 from(double value) {
    return {.bits = detail::round_to_bits<5, 10>(value)};
  }

  constexpr float to_float() const {
    const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31;
    const std::uint32_t exponent = bits >> 10 & 0x1f;
    const std::uint32_t mantissa = bits & 0x3ff;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    const std::uint32_t float_exponent = exponent == 0x1f ? 0xff : exponent + 127 - 15;
    return std::bit_cast<float>(sign | float_exponent << 23 | mantissa << 13);
  }
};

struct BFloat16 {
  std::uint16_t bits = 0;

  static constexpr BFloat16 from(double value) {
    return {.bits = detail::round_to_bits<8, 7>(value)};
  }

  constexpr float to_float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace stof::base
