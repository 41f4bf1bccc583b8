#pragma once

#include <algorithm>
#include <cstdint>

namespace stof::mask_layout {

// The bits of an inner tile of which the pairs exist, `rows` and `columns` from its corner.
__device__ inline std::uint64_t existing_pairs(std::int64_t rows, std::int64_t columns) {
  const auto count = [](std::int64_t n) {
    return static_cast<unsigned>(std::min(std::max(n, std::int64_t{0}), std::int64_t{8}));
  };
  const std::uint64_t row = (1U << count(columns)) - 1;
  const std::uint64_t all = row * 0x0101010101010101;
  return count(rows) == 8 ? all : all & ((std::uint64_t{1} << 8 * count(rows)) - 1);
}

}  // namespace stof::mask_layout
