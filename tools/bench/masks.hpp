#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stof/mask.hpp"

namespace stof::bench {

inline constexpr std::array<std::string_view, 10> kMaskNames = {
    "full",    "causal",        "sliding",    "dilated", "longformer",
    "bigbird", "bigbird_block", "doc_causal", "window",  "random1"};

// The mask of peers/masks.py of that name for n queries and keys, the same bits. Throws
// std::invalid_argument for a name that is not in kMaskNames.
Mask mask(std::string_view name, std::int64_t n);

// Start offsets of packed documents of 300 to 1100 tokens, then n.
std::vector<std::int32_t> document_offsets(std::int64_t n);

}  // namespace stof::bench
