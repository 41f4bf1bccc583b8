#include "expr/evaluate.hpp"

#include <utility>
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

std::int64_t bound_word(const std::string& name, ScalarType type,
                        const std::optional<Value>& value) {
  if (!value) {
    fail(fmt::format("{} has no value", name));
  }
  if (type_of(*value) == type) {
    return word_of(*value);
  }
  if (type == ScalarType::Float && type_of(*value) == ScalarType::Int) {
    return word_of(static_cast<double>(std::get<std::int64_t>(*value)));
  }
  fail(fmt::format("{} is of type {}, and its value of type {}", name, name_of(type),
                   name_of(type_of(*value))));
}

Value run(const Expr& expr, const Interpreter& interpreter, const Lookup& lookup) {
  const Program& program = interpreter.program();
  std::vector<std::int64_t> scalars;
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    const std::string& name = program.scalars[i];
    scalars.push_back(bound_word(name, program.scalar_types[i], lookup(name)));
  }
  return value_of(expr.type(), interpreter.run_one(scalars));
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
  return run(expr, Interpreter(compile(expr), read), [&](const std::string& name) {
    const auto found = bindings.find(name);
    return found == bindings.end() ? std::nullopt : std::optional(found->second);
  });
}

std::int64_t evaluate_integer(const Expr& expr, const Bindings& bindings) {
  check_type(expr, ScalarType::Int);
  return std::get<std::int64_t>(evaluate(expr, bindings));
}

bool evaluate_truth(const Expr& expr, const Bindings& bindings) {
  check_type(expr, ScalarType::Bool);
  return std::get<bool>(evaluate(expr, bindings));
}

Formula::Formula(Expr expr)
    : expr_(std::move(expr)), interpreter_(std::make_shared<const Interpreter>(compile(expr_))) {}

Value Formula::evaluate(const Lookup& lookup) const {
  return run(expr_, *interpreter_, lookup);
}

std::int64_t Formula::evaluate_integer(const Lookup& lookup) const {
  check_type(expr_, ScalarType::Int);
  return std::get<std::int64_t>(evaluate(lookup));
}

bool Formula::evaluate_truth(const Lookup& lookup) const {
  check_type(expr_, ScalarType::Bool);
  return std::get<bool>(evaluate(lookup));
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
