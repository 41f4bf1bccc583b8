#include "fusion/grouped_queries.hpp"

#include <cstdint>
#include <utility>

#include "expr/transform.hpp"
#include "fusion/attention_rewriter.hpp"
#include "graph/op_info.hpp"
#include "mask/layout.hpp"

namespace stof::fusion {

namespace {

using graph::Operator;

// How many heads share a key head, where their queries fit one tile; else 1.
std::int64_t group_size(const graph::Ir& ir, const Operator& op) {
  if (!is_plain(op)) {
    return 1;
  }
  const Shape& q = graph::value_at(ir, op.inputs[0]).shape;
  const Shape& k = graph::value_at(ir, op.inputs[1]).shape;
  const std::int64_t group = q[1].value() / k[1].value();
  return group * q[2].value() <= mask::kTile ? group : 1;
}

// Each of `q_len` queries again and again.
Mask mask_of_rows(const Expr& predicate, std::int64_t q_len) {
  return expr::fold(expr::substitute(
      predicate,
      {{"q_pos", q_len == 1 ? Expr(0) : query_position() % q_len}, {"q_len", Expr(q_len)}}));
}

// [batch, key heads * group, q_len, width] as [batch, key heads, group * q_len, width].
void add_attention_of_rows(AttentionRewriter& graph, Operator op, std::int64_t group) {
  const auto add_rows = [&](int value) {
    const Shape& shape = graph.shape(value);
    return graph.add_value(value, {shape[0].value(), shape[1].value() / group,
                                   shape[2].value() * group, shape[3].value()});
  };
  if (op.attributes.contains("mask")) {
    op.attributes["mask"] = mask_of_rows(predicate_of(op), graph.shape(op.inputs[0])[2].value());
  }
  const int rows = add_rows(op.inputs[0]);
  graph.add_reshape(op.inputs[0], rows);
  op.inputs[0] = rows;
  const int output = std::exchange(op.outputs[0], add_rows(op.outputs[0]));
  const int output_rows = op.outputs[0];
  graph.add(std::move(op));
  graph.add_reshape(output_rows, output);
}

}  // namespace

graph::Ir with_grouped_queries(graph::Ir ir) {
  for (std::size_t i = 0; i < ir.operators.size(); ++i) {
    const std::int64_t group = group_size(ir, ir.operators[i]);
    if (group > 1) {
      rewrite_attention(ir, i, [&](AttentionRewriter& graph, const Operator& op) {
        add_attention_of_rows(graph, op, group);
      });
    }
  }
  return ir;
}

}  // namespace stof::fusion
