#include "fusion/chain.hpp"

#include <algorithm>
#include <cstddef>

#include "graph/op_info.hpp"

namespace stof::fusion {

bool is_elementwise(graph::OpKind kind) {
  return kind >= graph::OpKind::Add && kind <= graph::OpKind::Cast;
}

namespace {

// Whether a kernel can make it where it is read, at next to no cost, rather than another one
// before.
bool is_renewed(const graph::Ir& ir, const Readers& readers, int value) {
  const int maker = graph::value_at(ir, value).producer;
  return maker >= 0 &&
         ir.operators[static_cast<std::size_t>(maker)].kind == graph::OpKind::ApplyMoments &&
         readers.only(value).has_value();
}

}  // namespace

bool grow(Chain& chain, const graph::Ir& ir, const Readers& readers,
          const std::vector<bool>& is_free) {
  const std::optional<int> reader = readers.only(chain.result());
  if (!reader || !is_free[static_cast<std::size_t>(*reader)]) {
    return false;
  }
  const graph::Operator& op = ir.operators[static_cast<std::size_t>(*reader)];
  const auto shape = [&](int value) -> const Shape& {
    return ir.values[static_cast<std::size_t>(value)]->shape;
  };
  if (!is_elementwise(op.kind) || !(shape(op.outputs[0]) == shape(chain.result()))) {
    return false;
  }
  // Chains compute in float: an integer that one makes is exact only where it is stored.
  if (!chain.statements.empty() &&
      !is_floating(ir.values[static_cast<std::size_t>(chain.result())]->dtype)) {
    return false;
  }
  std::vector<Statement> beside;
  for (const int value : op.inputs) {
    if (const int maker = graph::value_at(ir, value).producer;
        value != chain.result() && shape(value) == shape(chain.result()) &&
        is_renewed(ir, readers, value) && is_free[static_cast<std::size_t>(maker)]) {
      beside.push_back({.op = maker,
                        .operands = ir.operators[static_cast<std::size_t>(maker)].inputs,
                        .result = value});
    }
  }
  beside.push_back({.op = *reader, .operands = op.inputs, .result = op.outputs[0]});
  chain.statements.insert(chain.statements.end(), beside.begin(), beside.end());
  return true;
}

std::vector<int> other_operands(const Chain& chain) {
  std::vector<int> made = {chain.value};
  std::vector<int> others;
  for (const Statement& statement : chain.statements) {
    for (const int operand : statement.operands) {
      if (std::find(made.begin(), made.end(), operand) == made.end() &&
          std::find(others.begin(), others.end(), operand) == others.end()) {
        others.push_back(operand);
      }
    }
    made.push_back(statement.result);
  }
  return others;
}

}  // namespace stof::fusion
