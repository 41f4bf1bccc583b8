#include "expr/skeleton.hpp"

#include <bit>
#include <optional>

#include <fmt/format.h>

#include "expr/semantics.hpp"
#include "expr/transform.hpp"

namespace stof::expr {

namespace {

// 2^n - 1, or ~(2^n - 1).
bool is_plain_mask(std::int64_t value) {
  const std::uint64_t ones = bits_of(value < 0 ? ~value : value);
  return (ones & (ones + 1)) == 0;
}

// Whether code for this literal as the operand of `node` is better than for any number.
bool stays(const Node& node, std::size_t operand, const Value& value) {
  if (std::holds_alternative<bool>(value)) {
    return true;
  }
  if (const double* number = std::get_if<double>(&value)) {
    return *number == 0;
  }
  const std::int64_t integer = std::get<std::int64_t>(value);
  if (integer == 0) {
    return true;
  }
  switch (node.op) {
    case Op::Table:
    case Op::Capture:
      return true;
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::ShiftRightLogical:
      return operand == 1;
    case Op::Divide:
    case Op::Modulo:
    case Op::CeilDiv:
      return operand == 1 && is_power_of_two(integer);
    case Op::BitAnd:
      return is_plain_mask(integer);
    default:
      return false;
  }
}

class Extractor {
 public:
  explicit Extractor(const Expr& expr) : whole_(expr) {}

  Skeleton run() {
    Expr result = literal(whole_) && whole_.type() != ScalarType::Bool ? argument(*literal(whole_))
                                                                       : extract(whole_);
    return {std::move(result), std::move(arguments_)};
  }

 private:
  // Walks the tree, not its shared parts: each occurrence of a literal is an argument of its own.
  Expr extract(const Expr& expr) {
    const Node& node = expr.node();
    if (node.op == Op::Keep) {
      return extract_keep(node);
    }
    if (node.operands.empty()) {
      return expr;
    }
    return with_operands(node, extract_operands(node, node.operands.size()));
  }

  std::vector<Expr> extract_operands(const Node& node, std::size_t count) {
    std::vector<Expr> operands;
    for (std::size_t i = 0; i < count; ++i) {
      const Expr& operand = node.operands[i];
      const std::optional<Value> value = literal(operand);
      operands.push_back(value && !stays(node, i, *value) ? argument(*value) : extract(operand));
    }
    return operands;
  }

  Expr extract_keep(const Node& node) {
    const std::vector<Expr> operands = extract_operands(node, 3);
    const double fraction = std::get<double>(*literal(node.operands[3]));
    const Expr drawn = stof::hash(operands[0], operands[1], operands[2]);
    return stof::shift_right_logical(drawn, kKeepShift) < argument(keep_threshold(fraction));
  }

  Expr argument(const Value& value) {
    std::string name;
    do {
      name = fmt::format("arg{}", next_++);
    } while (uses(whole_, name));
    Expr result = Expr::scalar(name, type_of(value));
    arguments_.push_back({std::move(name), value});
    return result;
  }

  const Expr& whole_;
  std::vector<Skeleton::Argument> arguments_;
  int next_ = 0;
};

}  // namespace

Skeleton skeleton(const Expr& expr) {
  return Extractor(expr).run();
}

}  // namespace stof::expr
