#include "expr/node.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "expr/names.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

template <typename... T>
[[noreturn]] void fail(fmt::format_string<T...> format, T&&... values) {
  throw ExpressionError(0, "expression: " + fmt::format(format, std::forward<T>(values)...));
}

bool is_number(const Expr& expr) {
  return expr.type() != ScalarType::Bool;
}

bool is_of(ScalarType type, const std::vector<Expr>& operands) {
  return std::ranges::all_of(operands, [&](const Expr& e) { return e.type() == type; });
}

std::string_view wanted(Signature signature) {
  switch (signature) {
    case Signature::Number:
    case Signature::Float:
    case Signature::Convert:
      return "one number";
    case Signature::Integer:
      return "one integer or truth value";
    case Signature::Truth:
      return "one truth value";
    case Signature::Numbers:
    case Signature::Order:
      return "two numbers";
    case Signature::Integers:
      return "two integers";
    case Signature::Bits:
      return "two integers or two truth values";
    case Signature::Truths:
      return "two truth values";
    case Signature::Equality:
      return "two numbers or two truth values";
    case Signature::Choice:
      return "a truth value, then two numbers or two truth values";
    case Signature::HashedIntegers:
      return "integers";
    case Signature::HashedFraction:
      return "three integers and a literal fraction";
    case Signature::Leaf:
      break;
  }
  return "no operands";
}

[[noreturn]] void fail_types(Op op, const std::vector<Expr>& operands) {
  std::string types;
  for (const Expr& operand : operands) {
    types += types.empty() ? "" : &operand == &operands.back() ? " and " : ", ";
    types += name_of(operand.type());
  }
  fail("'{}' takes {}, not {}", info(op).text, wanted(info(op).signature), types);
}

// Two numbers of one type, or where `allow_truths` two truth values. Whether they fit.
bool unify(Expr& a, Expr& b, bool allow_truths) {
  if (a.type() == b.type()) {
    return allow_truths || is_number(a);
  }
  if (!is_number(a) || !is_number(b)) {
    return false;
  }
  a = to_float(a);
  b = to_float(b);
  return true;
}

bool check_keep(const std::vector<Expr>& operands) {
  const std::optional<Value> fraction = literal(operands[3]);
  if (!fraction || !std::holds_alternative<double>(*fraction)) {
    return false;
  }
  const double value = std::get<double>(*fraction);
  if (!(value >= 0 && value <= 1)) {
    fail("the fraction {} of 'keep' is not between 0 and 1", value);
  }
  return is_of(ScalarType::Int, {operands.begin(), operands.begin() + 3});
}

// On truth values the bit operations are their logical twins, so that each tree has one text.
Op logical_twin(Op op, const std::vector<Expr>& operands) {
  if (!is_of(ScalarType::Bool, operands)) {
    return op;
  }
  switch (op) {
    case Op::BitAnd:
      return Op::And;
    case Op::BitOr:
      return Op::Or;
    case Op::BitXor:
      return Op::NotEqual;
    case Op::BitNot:
      return Op::Not;
    default:
      return op;
  }
}

// Promotes the operands and gives the type of the result; nothing where they do not fit.
std::optional<ScalarType> resolve(Op op, std::vector<Expr>& operands) {
  using Result = std::optional<ScalarType>;
  const auto given = [](bool fits, ScalarType type) { return fits ? Result(type) : std::nullopt; };
  switch (info(op).signature) {
    case Signature::Number:
      return given(is_number(operands[0]), operands[0].type());
    case Signature::Truth:
    case Signature::Truths:
      return given(is_of(ScalarType::Bool, operands), ScalarType::Bool);
    case Signature::Float:
      if (!is_number(operands[0])) {
        return std::nullopt;
      }
      operands[0] = to_float(operands[0]);
      return ScalarType::Float;
    case Signature::Convert:
      return given(is_number(operands[0]), op == Op::ToInt ? ScalarType::Int : ScalarType::Float);
    case Signature::Numbers:
      return unify(operands[0], operands[1], false) ? Result(operands[0].type()) : std::nullopt;
    case Signature::Order:
      return given(unify(operands[0], operands[1], false), ScalarType::Bool);
    case Signature::Equality:
      return given(unify(operands[0], operands[1], true), ScalarType::Bool);
    case Signature::Integer:
    case Signature::Integers:
    case Signature::Bits:
    case Signature::HashedIntegers:
      return given(is_of(ScalarType::Int, operands), ScalarType::Int);
    case Signature::Choice:
      return operands[0].type() == ScalarType::Bool && unify(operands[1], operands[2], true)
                 ? Result(operands[1].type())
                 : std::nullopt;
    case Signature::HashedFraction:
      operands[3] = is_number(operands[3]) ? to_float(operands[3]) : operands[3];
      return given(check_keep(operands), ScalarType::Bool);
    case Signature::Leaf:
      break;
  }
  return std::nullopt;
}

Expr finish(Node node) {
  std::int64_t size = 1;
  for (const Expr& operand : node.operands) {
    node.depth = std::max(node.depth, operand.node().depth + 1);
    size += operand.node().size;
  }
  if (node.depth > kMaxDepth) {
    fail("more than {} operations inside each other", kMaxDepth);
  }
  if (size > kMaxNodes) {
    fail("more than {} operations", kMaxNodes);
  }
  node.size = static_cast<int>(size);
  return Expr(std::make_shared<const Node>(std::move(node)));
}

Expr make_indexed(Op op, ScalarType type, decltype(Node::payload) payload, SharedNames names,
                  std::vector<Expr> indices) {
  return finish({.op = op,
                 .type = type,
                 .payload = std::move(payload),
                 .operands = std::move(indices),
                 .names = std::move(names)});
}

Expr make_capture(const Capture& capture, std::vector<Expr> indices) {
  if (std::ssize(indices) != capture.rank()) {
    fail("capture {} takes {} indices, not {}", capture.name(), capture.rank(), indices.size());
  }
  for (const Expr& index : indices) {
    if (index.type() != ScalarType::Int) {
      fail("an index of capture {} is an integer, not {}", capture.name(), name_of(index.type()));
    }
  }
  SharedNames names = with_name(merge_names(indices), capture);
  return make_indexed(Op::Capture, capture.type(), capture, std::move(names), std::move(indices));
}

bool same_leaf(const Node& a, const Node& b) {
  switch (a.op) {
    case Op::Constant:
      // Bits, so that -0.0 is not 0.0 and NaN is itself.
      return a.type == ScalarType::Float
                 ? std::bit_cast<std::int64_t>(std::get<double>(a.value())) ==
                       std::bit_cast<std::int64_t>(std::get<double>(b.value()))
                 : a.value() == b.value();
    case Op::Scalar:
      return a.name() == b.name();
    case Op::Table:
      return a.table().name() == b.table().name() && same_data(a.table(), b.table());
    case Op::Capture:
      return a.capture().name() == b.capture().name() && same_data(a.capture(), b.capture());
    default:
      return true;
  }
}

}  // namespace

Expr make(Op op, std::vector<Expr> operands) {
  if (std::ssize(operands) != info(op).arity || operands.empty()) {
    fail("'{}' takes {} operands, not {}", info(op).text, info(op).arity, operands.size());
  }
  op = logical_twin(op, operands);
  const std::optional<ScalarType> type = resolve(op, operands);
  if (!type) {
    fail_types(op, operands);
  }
  if ((op == Op::ToFloat || op == Op::ToInt) && operands[0].type() == *type) {
    return operands[0];
  }
  if (const std::optional<Value> value = literal(operands[0]); value && op == Op::ToFloat) {
    return make_constant(static_cast<double>(std::get<std::int64_t>(*value)));
  }
  SharedNames names = merge_names(operands);
  return finish(
      {.op = op, .type = *type, .payload = {}, .operands = std::move(operands), .names = names});
}

Expr make_constant(Value value) {
  if (double* number = std::get_if<double>(&value); number != nullptr && std::isnan(*number)) {
    *number = std::numeric_limits<double>::quiet_NaN();  // one NaN, as there is one text for it
  }
  return finish(
      {.op = Op::Constant, .type = type_of(value), .payload = value, .operands = {}, .names = {}});
}

Expr make_table(const Table& table, const Expr& index) {
  if (index.type() != ScalarType::Int) {
    fail("the index of table {} is an integer, not {}", table.name(), name_of(index.type()));
  }
  return make_indexed(Op::Table, table.type(), table, with_name(index.node().names, table),
                      {index});
}

Expr with_operands(const Node& node, std::vector<Expr> operands) {
  if (node.op == Op::Table) {
    return make_table(node.table(), operands.at(0));
  }
  if (node.op == Op::Capture) {
    return make_capture(node.capture(), std::move(operands));
  }
  return make(node.op, std::move(operands));
}

std::optional<Value> literal(const Expr& expr) {
  return expr.node().op == Op::Constant ? std::optional<Value>(expr.node().value()) : std::nullopt;
}

const ExprNames& names_used(const Expr& expr) {
  static const ExprNames none;
  return expr.node().names ? *expr.node().names : none;
}

bool same(const Expr& a, const Expr& b) {
  const Node& left = a.node();
  const Node& right = b.node();
  if (&left == &right) {
    return true;
  }
  return left.op == right.op && left.type == right.type && left.size == right.size &&
         same_leaf(left, right) &&
         std::ranges::equal(left.operands, right.operands,
                            [](const Expr& x, const Expr& y) { return same(x, y); });
}

ScalarType type_of(const Value& value) {
  return static_cast<ScalarType>(value.index());
}

std::string_view name_of(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return "bool";
    case ScalarType::Int:
      return "int";
    case ScalarType::Float:
      break;
  }
  return "float";
}

}  // namespace stof::expr

namespace stof {

Expr Expr::scalar(std::string_view name, ScalarType type) {
  expr::check_name("scalar", name);
  return expr::finish({.op = expr::Op::Scalar,
                       .type = type,
                       .payload = std::string(name),
                       .operands = {},
                       .names = expr::with_name(std::string(name), type)});
}

Expr Capture::at(std::vector<Expr> indices) const {
  return expr::make_capture(*this, std::move(indices));
}

}  // namespace stof
