#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers with a fixed form, as printf, str.format and the round filter need them. Independent of
// the locale.
namespace stof::render {

// One of e E f F g G, with `precision` digits; `keeps_point` is the # of printf. No sign of its own
// but a minus.
std::string format_real(double number, char form, int precision, bool keeps_point);

// The digits of a magnitude in base 2, 8, 10 or 16.
std::string format_digits(std::uint64_t magnitude, int base, bool is_upper);
std::uint64_t magnitude_of(std::int64_t number);

// round(number, digits): half to even, of the exact binary value.
double round_real(double number, std::int64_t digits);

// Text to number as int(text, base) and float(text) read it; no value for what they refuse.
struct ParsedInteger {
  enum class Status { Good, Bad, Overflow } status = Status::Bad;
  std::int64_t number = 0;
};
ParsedInteger parse_integer(std::string_view text, std::int64_t base);
struct ParsedReal {
  bool is_good = false;
  double number = 0;
};
ParsedReal parse_real(std::string_view text);

inline constexpr int kMaxPrecision = 1000;

}  // namespace stof::render
