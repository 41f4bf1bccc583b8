#include "base/float16.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

using stof::base::BFloat16;
using stof::base::Float16;

namespace {

// The value of 16 bits by the definition of IEEE 754.
template <int kExponentBits, int kMantissaBits>
double decode(std::uint16_t bits) {
  const int exponent = bits >> kMantissaBits & ((1 << kExponentBits) - 1);
  const int mantissa = bits & ((1 << kMantissaBits) - 1);
  const int bias = (1 << (kExponentBits - 1)) - 1;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == (1 << kExponentBits) - 1) {
    return mantissa == 0 ? sign * INFINITY : NAN;
  }
  const double fraction = std::ldexp(mantissa, -kMantissaBits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias));
}

struct HalfFormat {
  using Type = Float16;
  static constexpr std::uint16_t kInfinity = 0x7c00;
  static constexpr std::uint16_t kQuiet = 0x0200;
  static double value(std::uint16_t bits) { return decode<5, 10>(bits); }
};

struct BFloatFormat {
  using Type = BFloat16;
  static constexpr std::uint16_t kInfinity = 0x7f80;
  static constexpr std::uint16_t kQuiet = 0x0040;
  static double value(std::uint16_t bits) { return decode<8, 7>(bits); }
};

// One failing CHECK a loop, not 65,536 passing ones: doctest takes its time for each.
template <typename Holds>
std::uint32_t first_failure(Holds holds) {
  std::uint32_t bits = 0;
  while (bits < 65536 && holds(static_cast<std::uint16_t>(bits))) {
    ++bits;
  }
  return bits;
}

}  // namespace

TEST_CASE_TEMPLATE("every pattern has the value that IEEE 754 gives it", Format, HalfFormat,
                   BFloatFormat) {
  CHECK(first_failure([](std::uint16_t bits) {
          const double expected = Format::value(bits);
          const float value = typename Format::Type{bits}.to_float();
          return std::isnan(expected)
                     ? std::isnan(value)
                     : value == expected && std::signbit(value) == (bits >> 15 != 0);
        }) == 65536);
}

TEST_CASE_TEMPLATE("every pattern comes back from its value; a NaN comes back quiet", Format,
                   HalfFormat, BFloatFormat) {
  CHECK(first_failure([](std::uint16_t bits) {
          const float value = typename Format::Type{bits}.to_float();
          const std::uint16_t expected = std::isnan(value) ? bits | Format::kQuiet : bits;
          return Format::Type::from(value).bits == expected;
        }) == 65536);
}

TEST_CASE_TEMPLATE("halfway goes to the even neighbour, and any other value to the nearest", Format,
                   HalfFormat, BFloatFormat) {
  const auto round = [](double value) { return Format::Type::from(value).bits; };
  CHECK(first_failure([&](std::uint16_t bits) {
          const std::uint16_t magnitude = bits & 0x7fff;
          const auto next = static_cast<std::uint16_t>(bits + 1);
          if (magnitude >= Format::kInfinity) {
            return true;
          }
          const double value = Format::value(bits);
          // The step to infinity is as if one more number came.
          const double above = magnitude + 1 == Format::kInfinity
                                   ? value + (value - Format::value(bits - 1))
                                   : Format::value(next);
          const double half = value + (above - value) / 2;
          const std::uint16_t even = bits % 2 == 0 ? bits : next;
          return round(half) == even && round(std::nextafter(half, value)) == bits &&
                 round(std::nextafter(half, above)) == next &&
                 round(static_cast<double>(static_cast<float>(half))) == even &&
                 round(value + (above - value) / 4) == bits &&
                 round(value + (above - value) * 3 / 4) == next;
        }) == 65536);
}

TEST_CASE_TEMPLATE("far outside the range are infinity and zero, with their sign", Format,
                   HalfFormat, BFloatFormat) {
  using Type = typename Format::Type;
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  CHECK(Type::from(kLargest).bits == Format::kInfinity);
  CHECK(Type::from(-kLargest).bits == (Format::kInfinity | 0x8000));
  CHECK(Type::from(INFINITY).bits == Format::kInfinity);
  CHECK(Type::from(kTiny).bits == 0);
  CHECK(Type::from(-kTiny).bits == 0x8000);
  CHECK(Type::from(-0.0).bits == 0x8000);
  CHECK(std::isnan(Type::from(NAN).to_float()));
  CHECK(std::isnan(Type::from(std::bit_cast<double>(0x7ff0000000000001)).to_float()));
}

TEST_CASE("a double is rounded once: rounding to float first would end elsewhere") {
  // Just above halfway between 1 and the next half.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  CHECK(Float16::from(value).to_float() == 1 + 0x1p-10f);
  CHECK(Float16::from(static_cast<float>(value)).to_float() == 1);
}
