#include "mask/longest_first.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace stof::mask {

std::vector<std::int32_t> longest_first(std::span<const std::int32_t> row_ptr) {
  std::vector<std::int32_t> order(row_ptr.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::int32_t r) { return row_ptr[r + 1] - row_ptr[r]; });
  return order;
}

}  // namespace stof::mask
