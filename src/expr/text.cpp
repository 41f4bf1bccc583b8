// Prints an expression with as few parentheses as parsing it back to the same tree allows.
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "expr/node.hpp"

namespace stof {

namespace {

using expr::info;
using expr::Node;
using expr::Op;

// The shortest digits that read back as the value, and that read as a float.
std::string float_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string literal_text(const expr::Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) {
    return *truth ? "true" : "false";
  }
  if (const std::int64_t* integer = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*integer);
  }
  return float_text(std::get<double>(value));
}

class Printer {
 public:
  void print(const Expr& expr, int least_precedence) {
    const bool is_open = info(expr.node().op).precedence < least_precedence;
    text_ += is_open ? "(" : "";
    print(expr.node());
    text_ += is_open ? ")" : "";
  }

  std::string take() { return std::move(text_); }

 private:
  void print(const Node& node) {
    switch (node.op) {
      case Op::Constant:
        text_ += literal_text(node.value());
        return;
      case Op::Scalar:
        text_ += node.name();
        return;
      case Op::Table:
        print_list(node.table().name() + "[", node, "]");
        return;
      case Op::Capture:
        print_list(node.capture().name() + "[", node, "]");
        return;
      case Op::Select:
        print_select(node);
        return;
      default:
        break;
    }
    if (expr::is_infix(node.op)) {
      print_infix(node);
    } else if (info(node.op).precedence == expr::kUnaryPrecedence) {
      print_unary(node);
    } else {
      print_list(std::string(info(node.op).text) + "(", node, ")");
    }
  }

  void print_list(const std::string& open, const Node& node, const char* close) {
    text_ += open;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      text_ += i == 0 ? "" : ", ";
      print(node.operands[i], 0);
    }
    text_ += close;
  }

  void print_select(const Node& node) {
    print(node.operands[0], expr::kTernaryPrecedence + 1);
    text_ += " ? ";
    print(node.operands[1], 0);
    text_ += " : ";
    print(node.operands[2], expr::kTernaryPrecedence);
  }

  void print_infix(const Node& node) {
    const int precedence = info(node.op).precedence;
    print(node.operands[0], precedence);
    text_ += " ";
    text_ += info(node.op).text;
    text_ += " ";
    print(node.operands[1], precedence + 1);
  }

  // A minus before a literal is part of the literal, and `--` is hard to read.
  void print_unary(const Node& node) {
    const Op inner = node.operands[0].node().op;
    const bool is_open = node.op == Op::Negate && (inner == Op::Constant || inner == Op::Negate);
    text_ += info(node.op).text;
    print(node.operands[0], is_open ? expr::kPrimaryPrecedence + 1 : expr::kUnaryPrecedence);
  }

  std::string text_;
};

}  // namespace

std::string Expr::text() const {
  Printer printer;
  printer.print(*this, 0);
  return printer.take();
}

}  // namespace stof
