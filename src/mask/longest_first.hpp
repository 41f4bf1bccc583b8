#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stof::mask {

// The order in which work is handed out: all rows of a compressed list, those with most entries
// first, of equals the lower number first.
std::vector<std::int32_t> longest_first(std::span<const std::int32_t> row_ptr);

}  // namespace stof::mask
