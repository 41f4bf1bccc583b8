#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "stof/expr.hpp"

namespace stof::expr {

// Whether the expression reads a scalar, table or capture of that name.
bool uses(const Expr& expr, std::string_view name);

// Whether it is the same for all scores of a query row, whatever captured tensors hold: it reads
// neither key, nor score, nor capture.
bool is_of_row(const Expr& expr);

using Replacements = std::map<std::string, Expr, std::less<>>;

// The expression with scalars replaced by expressions; those of type Int may replace floats. Throws
// ExpressionError where types, limits or names do not fit.
Expr substitute(const Expr& expr, const Replacements& replacements);

// An expression of the same value everywhere, in which what is constant is a literal and what
// changes nothing is left out (x && true, x + 0, true ? x : y, and so on). Floats are folded in
// doubles, as evaluate() does.
Expr fold(const Expr& expr);

// Names the expression for ever: its text, the types of its scalars, the entries of its tables and
// the kinds of its captures.
base::Digest digest(const Expr& expr);

}  // namespace stof::expr
