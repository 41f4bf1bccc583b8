#pragma once

#include "reference/call.hpp"

// Operators on attention scores [batch, heads, q_len, kv_len], of which attention is made.
namespace stof::reference {

// OpKind::Score and OpKind::Mask.
Array modify_scores(const Call& call);
Array mask_scores(const Call& call);

}  // namespace stof::reference
