#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stof/mask.hpp"

namespace stof::bench {

// Those of the goals, then masks of models in use: prefix-LM, packed documents, Llama 4's chunks,
// a window with attention sinks, causal among frames, neighbours in a grid, Sparse Transformer's
// strides, ModernBERT's window.
std::vector<std::string_view> mask_names();

// The mask of peers/masks.py of that name for n queries and keys, the same bits. Throws
// std::invalid_argument for a name that is none of mask_names().
Mask mask(std::string_view name, std::int64_t n);

// Start offsets of packed documents of 300 to 1100 tokens, then n.
std::vector<std::int32_t> document_offsets(std::int64_t n);

}  // namespace stof::bench
