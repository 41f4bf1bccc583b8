#include "fusion/attention_rewriter.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "fusion/placement.hpp"
#include "graph/op_info.hpp"
#include "mask/node.hpp"

namespace stof::fusion {

using graph::Operator;
using graph::OpKind;

namespace {

// Whether what lies in memory as strides say, and outputs that lie packed, still do.
bool needs_no_copy(const graph::Ir& before, const graph::Ir& after) {
  const Placement old_places(before);
  const Placement new_places(after);
  for (std::size_t id = 0; id < after.values.size(); ++id) {
    const auto value = static_cast<int>(id);
    const bool had_view = id >= before.values.size() || old_places.view(value).has_value();
    if (had_view && !new_places.view(value)) {
      return false;
    }
  }
  return std::ranges::all_of(before.outputs, [&](const graph::Output& output) {
    const auto old_view = old_places.view(output.value);
    return !old_view || !old_view->is_packed() || new_places.view(output.value)->is_packed();
  });
}

}  // namespace

bool has_mask_of_positions(const Operator& op) {
  constexpr std::size_t kOperands = 4;  // q, k, v and numbers of keys
  const auto* mask = graph::find_attribute<Mask>(op, "mask");
  const bool is_of_positions = mask == nullptr || (mask->is_expression() && !mask->has_captures() &&
                                                   !mask->uses_batch() && !mask->uses_head());
  return op.kind == OpKind::Attention && is_of_positions && op.inputs.size() <= kOperands;
}

bool is_plain(const Operator& op) {
  return has_mask_of_positions(op) && graph::find_attribute<Expr>(op, "score") == nullptr;
}

mask::Extent extent_of(const graph::Ir& ir, const Operator& attention) {
  const Shape& q = graph::value_at(ir, attention.inputs[0]).shape;
  const Shape& k = graph::value_at(ir, attention.inputs[1]).shape;
  return {
      .batch = q[0].value(), .heads = q[1].value(), .q_len = q[2].value(), .kv_len = k[2].value()};
}

Expr predicate_of(const Operator& attention) {
  const auto* mask = graph::find_attribute<Mask>(attention, "mask");
  return mask == nullptr ? Expr(true) : std::get<Expr>(mask->node().form);
}

graph::Ir AttentionRewriter::run(
    const std::function<void(AttentionRewriter&, const Operator&)>& add_attention) {
  const std::vector<Operator> operators = std::exchange(ir_.operators, {});
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (i == place_) {
      add_attention(*this, operators[i]);
    } else {
      add(operators[i]);
    }
  }
  return std::move(ir_);
}

const Shape& AttentionRewriter::shape(int value) const {
  return graph::value_at(ir_, value).shape;
}

void AttentionRewriter::add(Operator op) {
  for (const int output : op.outputs) {
    graph::Value value = graph::value_at(ir_, output);
    value.producer = static_cast<int>(ir_.operators.size());
    ir_.values[graph::at(output)] = std::make_shared<const graph::Value>(std::move(value));
  }
  ir_.operators.push_back(std::move(op));
}

int AttentionRewriter::add_value(int like, std::span<const std::int64_t> extents) {
  const graph::Value& other = graph::value_at(ir_, like);
  const auto id = static_cast<int>(ir_.values.size());
  graph::Value value{.name = fmt::format("{}.view{}", other.name, id),
                     .shape = Shape::of(extents),
                     .dtype = other.dtype};
  ir_.ids.emplace(value.name, id);
  ir_.values.push_back(std::make_shared<const graph::Value>(std::move(value)));
  return id;
}

void AttentionRewriter::add_reshape(int from, int to) {
  add({.kind = OpKind::Reshape,
       .inputs = {from},
       .outputs = {to},
       .attributes = {{"shape", shape(to)}}});
}

void AttentionRewriter::add_transpose(int from, int to) {
  add({.kind = OpKind::Transpose,
       .inputs = {from},
       .outputs = {to},
       .attributes = {{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}});
}

void rewrite_attention(
    graph::Ir& ir, std::size_t place,
    const std::function<void(AttentionRewriter&, const Operator&)>& add_attention, bool may_copy) {
  graph::Ir rewritten = AttentionRewriter(ir, place).run(add_attention);
  if (may_copy || needs_no_copy(ir, rewritten)) {
    ir = std::move(rewritten);
  }
}

}  // namespace stof::fusion
