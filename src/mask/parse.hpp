#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stof/mask.hpp"

namespace stof::mask {

// A mask from text: an expression over mask_names(), in which ready-made masks may stand for truth
// values: "sliding_window(64, 64) || global_tokens(4)", "documents(0, 300, 512) && causal". Throws
// ExpressionError with the column, and what the maker of a ready-made mask throws.
Mask parse_mask(std::string_view text);

// Those that parse_mask knows, as they are called: "sliding_window(left, right)".
std::vector<std::string> ready_made_masks();

}  // namespace stof::mask
