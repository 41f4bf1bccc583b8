#pragma once

#include "contract/contract.hpp"
#include "contract/header.hpp"

namespace stof::contract {

// Reads one operator: "y, lse = softmax?(x, bias; axis = -1, count: int)". Throws TemplateError.
PatternStep parse_pattern_step(const HeaderValue& text);

}  // namespace stof::contract
