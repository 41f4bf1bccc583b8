#include "expr/evaluate.hpp"

#include <vector>

#include <fmt/format.h>

#include "expr/lexer.hpp"
#include "expr/semantics.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw ExpressionError(0, "expression: " + message);
}

std::int64_t bound_word(const std::string& name, ScalarType type, const Bindings& bindings) {
  const auto found = bindings.find(name);
  if (found == bindings.end()) {
    fail(fmt::format("{} has no value", name));
  }
  const Value& value = found->second;
  if (type_of(value) == type) {
    return word_of(value);
  }
  if (type == ScalarType::Float && type_of(value) == ScalarType::Int) {
    return word_of(static_cast<double>(std::get<std::int64_t>(value)));
  }
  fail(fmt::format("{} is of type {}, and its value of type {}", name, name_of(type),
                   name_of(type_of(value))));
}

void check_type(const Expr& expr, ScalarType type) {
  if (expr.type() != type) {
    fail(fmt::format("{} is of type {}, not {}", shortened(expr.text()), name_of(expr.type()),
                     name_of(type)));
  }
}

}  // namespace

Value evaluate(const Expr& expr, const Bindings& bindings, const CaptureReader& read) {
  const ExprNames& names = names_used(expr);
  if (!names.captures.empty() && !read) {
    fail(fmt::format("capture {} has no data", names.captures.begin()->first));
  }
  std::vector<std::int64_t> scalars;
  for (const auto& [name, type] : names.scalars) {
    scalars.push_back(bound_word(name, type, bindings));
  }
  return value_of(expr.type(), Interpreter(compile(expr), read).run_one(scalars));
}

std::int64_t evaluate_integer(const Expr& expr, const Bindings& bindings) {
  check_type(expr, ScalarType::Int);
  return std::get<std::int64_t>(evaluate(expr, bindings));
}

bool evaluate_truth(const Expr& expr, const Bindings& bindings) {
  check_type(expr, ScalarType::Bool);
  return std::get<bool>(evaluate(expr, bindings));
}

std::int64_t word_of(const Value& value) {
  if (const double* number = std::get_if<double>(&value)) {
    return word_of(*number);
  }
  const bool* truth = std::get_if<bool>(&value);
  return truth != nullptr ? static_cast<std::int64_t>(*truth) : std::get<std::int64_t>(value);
}

Value value_of(ScalarType type, std::int64_t word) {
  switch (type) {
    case ScalarType::Bool:
      return word != 0;
    case ScalarType::Int:
      return word;
    case ScalarType::Float:
      break;
  }
  return float_of(word);
}

}  // namespace stof::expr
