#pragma once

#include <memory>
#include <span>

#include "stof/expr.hpp"

namespace stof::expr {

using SharedNames = std::shared_ptr<const ExprNames>;

// All that the operands use, in a set that they share where one of them uses everything. Throws
// ExpressionError where a name stands for two things.
SharedNames merge_names(std::span<const Expr> operands);

// The operands' names and one more.
SharedNames with_name(const SharedNames& names, const Table& table);
SharedNames with_name(const SharedNames& names, const Capture& capture);
SharedNames with_name(const std::string& scalar, ScalarType type);

// Whether the two hold the same entries, and read alike.
bool same_data(const Table& a, const Table& b);
bool same_data(const Capture& a, const Capture& b);
inline bool same_data(ScalarType a, ScalarType b) {
  return a == b;
}

}  // namespace stof::expr
