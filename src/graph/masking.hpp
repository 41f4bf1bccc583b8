#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/inference.hpp"

namespace stof::graph {

// The extents of attention scores, symbolic or not.
struct ScoreExtent {
  Dim batch;
  Dim heads;
  Dim q_len;
  Dim kv_len;
};

// Of a shape [batch, heads, q_len, kv_len].
ScoreExtent score_extent(const Shape& shape);

// Checks what hides keys: kv_lengths at input `first`, the data of mask_form behind it, and the
// attributes mask and like.
void check_masking(const Inference& inference, int first, const ScoreExtent& extent);

// Checks the names that the attributes mask and score use, and that captures binds each of their
// captures, and no other, to a value of that dtype and rank.
void check_captures(const Inference& inference);

// The expressions in a mask, from left to right.
std::vector<Expr> expressions(const stof::Mask& mask);
// Those in the attributes mask and score of an operator.
std::vector<Expr> expressions(const Operator& op);

// What these capture, by name.
std::set<std::string> captures_read(const Operator& op);

}  // namespace stof::graph
