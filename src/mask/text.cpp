#include <string>
#include <variant>

#include <fmt/format.h>

#include "mask/node.hpp"

namespace stof::mask {

namespace {

std::string shape_text(const DataExtent& data) {
  const auto [q_len, kv_len] = *data.lengths;
  return data.batch == 1 && data.heads == 1
             ? fmt::format("[{}, {}]", q_len, kv_len)
             : fmt::format("[{}, {}, {}, {}]", data.batch, data.heads, q_len, kv_len);
}

// In parentheses where an operator of the text might bind looser than the one around it.
std::string operand_text(const Mask& mask) {
  const std::string text = mask.text();
  return text.find_first_of("&|^?") == std::string::npos ? text : "(" + text + ")";
}

std::string text_of(const Combination& combination) {
  const auto& operands = combination.operands;
  switch (combination.operation) {
    case Operation::And:
      return fmt::format("{} & {}", operand_text(operands[0]), operand_text(operands[1]));
    case Operation::Or:
      return fmt::format("{} | {}", operand_text(operands[0]), operand_text(operands[1]));
    case Operation::Not:
      break;
  }
  return fmt::format("~{}", operand_text(operands[0]));
}

}  // namespace

std::string text_of(const Node& node) {
  if (const auto* predicate = std::get_if<Expr>(&node.form)) {
    return predicate->text();
  }
  if (const auto* combination = std::get_if<Combination>(&node.form)) {
    return text_of(*combination);
  }
  const std::string shape = shape_text(node.data);
  if (const auto* blocks = std::get_if<BlockData>(&node.form)) {
    return fmt::format("blocks{}{}", blocks->block_size, shape);
  }
  return (std::holds_alternative<DenseData>(node.form) ? "dense" : "csr") + shape;
}

}  // namespace stof::mask
