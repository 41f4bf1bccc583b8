#include "graph/encode.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <variant>

#include "expr/node.hpp"
#include "expr/operation.hpp"
#include "expr/table.hpp"
#include "graph/masking.hpp"
#include "graph/op_info.hpp"
#include "mask/node.hpp"

namespace stof::graph {

namespace {

void add_captures(std::vector<std::string>& found, const Expr& expression) {
  const expr::Node& node = expression.node();
  if (node.op == expr::Op::Capture &&
      std::ranges::find(found, node.capture().name()) == found.end()) {
    found.push_back(node.capture().name());
  }
  for (const Expr& operand : node.operands) {
    add_captures(found, operand);
  }
}

class Encoder {
 public:
  Encoder(base::Hasher& hasher, const Operator& op, const Encoding& encoding)
      : hasher_(hasher), op_(op), encoding_(encoding) {}

  void add(bool value) { number(value ? 1 : 0); }
  void add(std::int64_t value) { number(value); }
  void add(double value) { hasher_.update_integer(std::bit_cast<std::uint64_t>(value)); }
  void add(const std::string& value) { hasher_.update_sized(value); }
  void add(DType value) { hasher_.update_sized(name(value)); }
  void add(const Dim& value) { hasher_.update_sized(encoding_.dim(value)); }

  void add(const std::vector<std::int64_t>& values) {
    number(std::ssize(values));
    for (const std::int64_t value : values) {
      number(value);
    }
  }

  void add(const Shape& shape) {
    number(shape.rank());
    for (const Dim& dim : shape.dims()) {
      add(dim);
    }
  }

  void add(const stof::Mask& mask) {
    const mask::Node& node = mask.node();
    number(static_cast<std::int64_t>(node.form.index()));
    if (const auto* expression = std::get_if<stof::Expr>(&node.form)) {
      add(*expression);
    } else if (const auto* combination = std::get_if<mask::Combination>(&node.form)) {
      number(static_cast<std::int64_t>(combination->operation));
      number(std::ssize(combination->operands));
      for (const stof::Mask& operand : combination->operands) {
        add(operand);
      }
    } else {
      hasher_.update_sized(node.digest);
    }
  }

  void add(const stof::Expr& expression) {
    const expr::Node& node = expression.node();
    hasher_.update_sized(expr::info(node.op).text);  // may serve two operations of other arity
    number(static_cast<std::int64_t>(node.op));
    number(static_cast<std::int64_t>(node.type));
    number(std::ssize(node.operands));
    if (node.op == expr::Op::Capture) {
      hasher_.update_integer(encoding_.value(op_.captures.at(node.capture().name())));
    } else if (node.op == expr::Op::Table) {
      hasher_.update_sized(node.table().data().digest.hex());
    } else if (node.op == expr::Op::Scalar) {
      hasher_.update_sized(node.name());
    } else if (node.op == expr::Op::Constant) {
      std::visit([&](auto value) { add(value); }, node.value());
    }
    for (const Expr& operand : node.operands) {
      add(operand);
    }
  }

 private:
  void number(std::int64_t value) { hasher_.update_integer(static_cast<std::uint64_t>(value)); }

  base::Hasher& hasher_;
  const Operator& op_;
  const Encoding& encoding_;
};

}  // namespace

std::vector<int> operand_ids(const Operator& op) {
  std::vector<int> ids;
  std::ranges::copy_if(op.inputs, std::back_inserter(ids), [](int id) { return id >= 0; });
  std::vector<std::string> captures;
  if (!op.captures.empty()) {
    for (const Expr& expression : expressions(op)) {
      add_captures(captures, expression);
    }
  }
  for (const std::string& capture : captures) {
    ids.push_back(op.captures.at(capture));
  }
  return ids;
}

void encode(base::Hasher& hasher, const Operator& op, const Encoding& encoding) {
  hasher.update_sized(name(op.kind));
  hasher.update_integer(op.outputs.size());
  hasher.update_integer(op.inputs.size());
  for (const int id : op.inputs) {
    hasher.update_integer(id < 0 ? ~std::uint64_t{0} : encoding.value(id));
  }
  Encoder encoder(hasher, op, encoding);
  hasher.update_integer(op.attributes.size());
  for (const auto& [attribute_name, attribute] : op.attributes) {
    hasher.update_sized(attribute_name);
    std::visit([&](const auto& value) { encoder.add(value); }, attribute);
  }
}

void encode(base::Hasher& hasher, const Value& value, const Encoding& encoding) {
  hasher.update_integer(static_cast<std::uint64_t>(value.role));
  hasher.update_sized(name(value.dtype));
  hasher.update_integer(static_cast<std::uint64_t>(value.layout));
  hasher.update_integer(static_cast<std::uint64_t>(value.shape.rank()));
  for (const Dim& dim : value.shape.dims()) {
    hasher.update_sized(encoding.dim(dim));
  }
}

}  // namespace stof::graph
