#include "expr/transform.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "expr/evaluate.hpp"
#include "expr/node.hpp"
#include "expr/table.hpp"
#include "stof/error.hpp"

namespace stof::expr {

namespace {

// Rebuilds a tree from its leaves up; what does not change stays shared, and what is shared is
// rebuilt once.
template <typename Rebuild>
class Rewriter {
 public:
  explicit Rewriter(Rebuild rebuild) : rebuild_(rebuild) {}

  Expr operator()(const Expr& expr) {
    if (const auto known = done_.find(&expr.node()); known != done_.end()) {
      return known->second;
    }
    const Node& node = expr.node();
    std::vector<Expr> operands;
    bool is_same = true;
    for (const Expr& operand : node.operands) {
      operands.push_back((*this)(operand));
      is_same = is_same && &operands.back().node() == &operand.node();
    }
    Expr result = rebuild_(is_same ? expr : with_operands(node, std::move(operands)));
    done_.emplace(&expr.node(), result);
    return result;
  }

 private:
  Rebuild rebuild_;
  std::unordered_map<const Node*, Expr> done_;
};

bool is_integer(const Expr& expr, std::int64_t value) {
  return literal(expr) == Value(value);
}

// What x op neutral == x and x op absorbing == absorbing hold for, on either side. Not for floats:
// -0.0 + 0.0 is 0.0, and NaN * 0.0 is NaN.
struct Identity {
  Op op;
  Value neutral;
  std::optional<Value> absorbing;
};

constexpr std::int64_t kOne = 1;
constexpr std::int64_t kZero = 0;

constexpr Identity kIdentities[] = {
    {Op::And, true, false},      {Op::Or, false, true},      {Op::Equal, true, {}},
    {Op::NotEqual, false, {}},   {Op::Add, kZero, {}},       {Op::Multiply, kOne, kZero},
    {Op::BitAnd, ~kZero, kZero}, {Op::BitOr, kZero, ~kZero}, {Op::BitXor, kZero, {}},
};

std::optional<Expr> fold_identity(Op op, const Expr& a, const Expr& b) {
  const auto found = std::ranges::find(kIdentities, op, &Identity::op);
  const std::optional<Value> value = literal(a);
  if (found == std::end(kIdentities) || !value) {
    return std::nullopt;
  }
  return *value == found->neutral     ? std::optional(b)
         : *value == found->absorbing ? std::optional(a)
                                      : std::nullopt;
}

// x - 0, x / 1, x << 0 and their like.
bool is_right_neutral(Op op, const Expr& b) {
  switch (op) {
    case Op::Subtract:
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::ShiftRightLogical:
      return is_integer(b, 0);
    case Op::Divide:
    case Op::CeilDiv:
      return is_integer(b, 1);
    default:
      return false;
  }
}

Expr fold_node(const Expr& expr) {
  const Node& node = expr.node();
  if (node.operands.empty()) {
    return expr;
  }
  const std::vector<Expr>& operands = node.operands;
  const bool is_constant =
      node.op != Op::Capture &&
      std::ranges::all_of(operands, [](const Expr& e) { return literal(e).has_value(); });
  if (is_constant) {
    return make_constant(evaluate(expr));
  }
  if (node.op == Op::Select) {
    const std::optional<Value> condition = literal(operands[0]);
    return !condition ? expr : operands[std::get<bool>(*condition) ? 1 : 2];
  }
  if (node.op == Op::Not && operands[0].node().op == Op::Not) {
    return operands[0].node().operands[0];
  }
  if (operands.size() != 2) {
    return expr;
  }
  if (const auto folded = fold_identity(node.op, operands[0], operands[1])) {
    return *folded;
  }
  if (const auto folded = fold_identity(node.op, operands[1], operands[0])) {
    return *folded;
  }
  return is_right_neutral(node.op, operands[1]) ? operands[0] : expr;
}

Expr replace(const Expr& expr, const Replacements& replacements) {
  if (expr.node().op != Op::Scalar) {
    return expr;
  }
  const auto found = replacements.find(expr.node().name());
  if (found == replacements.end() || found->second.type() == expr.type()) {
    return found == replacements.end() ? expr : found->second;
  }
  if (expr.type() == ScalarType::Float && found->second.type() == ScalarType::Int) {
    return to_float(found->second);
  }
  throw ExpressionError(
      0, fmt::format("expression: {} is of type {}, and what replaces it {}", found->first,
                     name_of(expr.type()), name_of(found->second.type())));
}

}  // namespace

bool uses(const Expr& expr, std::string_view name) {
  const ExprNames& names = names_used(expr);
  return names.scalars.contains(name) || names.tables.contains(name) ||
         names.captures.contains(name);
}

bool is_of_row(const Expr& expr) {
  const ExprNames& names = names_used(expr);
  return names.captures.empty() && !names.scalars.contains("k_pos") &&
         !names.scalars.contains("score");
}

Expr substitute(const Expr& expr, const Replacements& replacements) {
  Rewriter rewrite([&](const Expr& node) { return replace(node, replacements); });
  return rewrite(expr);
}

Expr fold(const Expr& expr) {
  Rewriter rewrite(fold_node);
  return rewrite(expr);
}

base::Digest digest(const Expr& expr) {
  const ExprNames& names = names_used(expr);
  std::string text = expr.text();
  for (const auto& [name, type] : names.scalars) {
    text += fmt::format("\nscalar {} {}", name, name_of(type));
  }
  for (const auto& [name, table] : names.tables) {
    text += fmt::format("\ntable {} {} {}", name, table.size(), table.data().digest.hex());
  }
  for (const auto& [name, capture] : names.captures) {
    text +=
        fmt::format("\ncapture {} {} {}", name, static_cast<int>(capture.dtype()), capture.rank());
  }
  return base::hash(text);
}

}  // namespace stof::expr
