#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "expr/interpreter.hpp"
#include "expr/node.hpp"

namespace stof::expr {

// What the names of an expression are worth: integers also where floats are wanted.
using Bindings = std::map<std::string, Value, std::less<>>;

// The value of an expression at one point. Throws ExpressionError for a name without a value or
// with one of another type, and for captures without a reader.
Value evaluate(const Expr& expr, const Bindings& bindings = {}, const CaptureReader& read = {});

// The value of an expression of type Int, or Bool; throws ExpressionError if it is of another type.
std::int64_t evaluate_integer(const Expr& expr, const Bindings& bindings = {});
bool evaluate_truth(const Expr& expr, const Bindings& bindings = {});

// Values to and from the words of programs.
std::int64_t word_of(const Value& value);
Value value_of(ScalarType type, std::int64_t word);

}  // namespace stof::expr
