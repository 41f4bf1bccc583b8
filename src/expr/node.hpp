#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "expr/operation.hpp"
#include "stof/expr.hpp"

namespace stof::expr {

// Every expression keeps to these, so that walking it by recursion, printing it and parsing it
// again are safe whoever wrote it. A node that is shared counts each time that it is reached.
inline constexpr int kMaxDepth = 512;
inline constexpr int kMaxNodes = 65536;

// A value of the language: a literal, or what an expression evaluates to.
using Value = std::variant<bool, std::int64_t, double>;

// An immutable operation on its operands. Made by make() and the builders, which check it.
struct Node {
  Op op;
  ScalarType type;
  int depth = 1;
  int size = 1;  // nodes of the tree below, and this one
  std::variant<Value, std::string, Table, Capture> payload;  // of Constant, Scalar, Table, Capture
  std::vector<Expr> operands;
  std::shared_ptr<const ExprNames>
      names;  // all that the tree uses, shared with its operands; or null

  const Value& value() const { return std::get<Value>(payload); }
  const std::string& name() const { return std::get<std::string>(payload); }
  const Table& table() const { return std::get<Table>(payload); }
  const Capture& capture() const { return std::get<Capture>(payload); }
};

// The operation on the operands, integers promoted where they meet floats. Throws ExpressionError
// where the types do not fit, a limit is passed, or one name stands for two things.
Expr make(Op op, std::vector<Expr> operands);
Expr make_constant(Value value);
Expr make_table(const Table& table, const Expr& index);

// The node with other operands, one for one.
Expr with_operands(const Node& node, std::vector<Expr> operands);

// The value of a literal; nothing for another expression.
std::optional<Value> literal(const Expr& expr);

// The names that the expression uses, and what they stand for.
const ExprNames& names_used(const Expr& expr);

// Whether the two are the same tree.
bool same(const Expr& a, const Expr& b);

ScalarType type_of(const Value& value);
std::string_view name_of(ScalarType type);  // "bool", "int", "float"

// Whether a scalar, table or capture may have the name.
bool is_name(std::string_view text);
// Throws ExpressionError, which calls the thing by `kind`, if it may not.
void check_name(std::string_view kind, std::string_view name);

}  // namespace stof::expr
