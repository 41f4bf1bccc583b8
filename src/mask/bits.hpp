#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace stof::mask {

inline constexpr std::int64_t kWordBits = 64;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0);
}

// The lowest `count` bits; count from 0 to 64.
constexpr std::uint64_t low_bits(std::int64_t count) {
  return count >= kWordBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Bits [begin, end) of words[0], words[1], … become 1.
void set_bits(std::span<std::uint64_t> words, std::int64_t begin, std::int64_t end);

// Truth values of [batch, heads, rows, columns], one bit each, the lowest first; each row is padded
// with zeros to whole words. batch or heads of 1 is shared by all.
struct BitTensor {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint64_t> words;

  std::int64_t words_per_row() const { return ceil_div(columns, kWordBits); }

  std::span<const std::uint64_t> row(std::int64_t b, std::int64_t h, std::int64_t r) const {
    const std::int64_t plane = (batch == 1 ? 0 : b) * heads + (heads == 1 ? 0 : h);
    return std::span(words).subspan((plane * rows + r) * words_per_row(), words_per_row());
  }

  bool at(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return row(b, h, r)[c / kWordBits] >> (c % kWordBits) & 1;
  }

  friend bool operator==(const BitTensor&, const BitTensor&) = default;
};

}  // namespace stof::mask
