#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stof::render {

// The number that a text starts with: 12, 1_000, 0x1F, 0o17, 0b1, 1.5, 2e3.
struct NumberLiteral {
  bool is_real = false;
  bool is_too_large = false;  // beyond int64, or infinite
  std::int64_t integer = 0;
  double real = 0;
  std::size_t size = 0;  // bytes that it takes
};
NumberLiteral read_number(std::string_view text, bool may_be_real);

// A string literal without its quotes, its escapes resolved; `error` is empty for a good one.
struct StringLiteral {
  std::string value;
  std::string error;
};
StringLiteral unescape(std::string_view text);

}  // namespace stof::render
