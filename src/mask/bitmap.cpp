// Bits of a tile in the three orders that they are needed in: rows of 64 keys, inner tiles, lanes.
#include "mask/layout.hpp"

namespace stof::mask {

namespace {

constexpr std::uint64_t kByte = 0xFF;

}  // namespace

// A byte is a row of an inner tile: byte c of row r of the tile is byte r % 8 of word 8 c + r / 8.
std::array<std::uint64_t, kTileWords> bitmap_of_rows(std::span<const std::uint64_t, kTile> rows) {
  std::array<std::uint64_t, kTileWords> bitmap{};
  for (std::size_t r = 0; r < kTile; ++r) {
    for (std::size_t c = 0; c < 8; ++c) {
      bitmap[8 * c + r / 8] |= (rows[r] >> (8 * c) & kByte) << (r % 8 * 8);
    }
  }
  return bitmap;
}

std::array<std::uint64_t, kTile> bitmap_rows(std::span<const std::uint64_t, kTileWords> bitmap) {
  std::array<std::uint64_t, kTile> rows{};
  for (std::size_t r = 0; r < kTile; ++r) {
    for (std::size_t c = 0; c < 8; ++c) {
      rows[r] |= (bitmap[8 * c + r / 8] >> (r % 8 * 8) & kByte) << (8 * c);
    }
  }
  return rows;
}

std::array<std::uint32_t, 128> lane_ordered_bitmap(
    std::span<const std::uint64_t, kTileWords> bitmap) {
  const std::array<std::uint64_t, kTile> rows = bitmap_rows(bitmap);
  std::array<std::uint32_t, 128> words{};
  for (std::size_t thread = 0; thread < words.size(); ++thread) {
    const std::size_t lane = thread % 32;
    const std::size_t row = thread / 32 * 16 + lane / 4;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::size_t column = 8 * j + 2 * (lane % 4);
      const auto upper = static_cast<std::uint32_t>(rows[row] >> column & 3);
      const auto lower = static_cast<std::uint32_t>(rows[row + 8] >> column & 3);
      words[thread] |= (upper | lower << 2) << (4 * j);
    }
  }
  return words;
}

}  // namespace stof::mask
