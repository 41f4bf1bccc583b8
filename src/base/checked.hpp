#pragma once

#include <cstdint>
#include <optional>

namespace stof::base {

// Integer arithmetic that says when 64 bits do not hold the result.

inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}

inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

}  // namespace stof::base
