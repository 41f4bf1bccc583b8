#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

// What a name is worth; nothing where it has no value.
using Lookup = std::function<std::optional<Value>(const std::string& name)>;

// An expression without captures that is evaluated often: it is compiled once. Copies share that.
// Throws as evaluate() and its kin.
class Formula {
 public:
  Formula(Expr expr);  // NOLINT(google-explicit-constructor): it is an expression, and prepared

  const Expr& expr() const { return expr_; }
  Value evaluate(const Lookup& lookup) const;
  std::int64_t evaluate_integer(const Lookup& lookup) const;
  bool evaluate_truth(const Lookup& lookup) const;

 private:
  Expr expr_;
  std::shared_ptr<const Interpreter> interpreter_;
};

// Values to and from the words of programs.
std::int64_t word_of(const Value& value);
Value value_of(ScalarType type, std::int64_t word);

}  // namespace stof::expr
