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

// Of all heads, from which on reading them once is worth more than tiles for more SMs, where these
// are more than one for a key head: by times on an H200, of 8192 20 % slower, of 16384 19 % faster.
constexpr std::int64_t kFewestKeys = 16384;

// How many heads share a key head, where their queries as rows fit one tile or have half as many
// tiles, or fewer; else 1.
std::int64_t group_size(const graph::Ir& ir, const Operator& op) {
  if (!is_plain(op)) {
    return 1;
  }
  const Shape& q = graph::value_at(ir, op.inputs[0]).shape;
  const Shape& k = graph::value_at(ir, op.inputs[1]).shape;
  const std::int64_t group = q[1].value() / k[1].value();
  const std::int64_t tiles = mask::ceil_div(q[2].value(), mask::kTile);
  const std::int64_t tiles_of_rows = mask::ceil_div(group * q[2].value(), mask::kTile);
  const std::int64_t keys = k[0].value() * k[1].value() * k[2].value();
  const bool is_worth_it =
      tiles_of_rows == 1 || (2 * tiles_of_rows <= group * tiles && keys >= kFewestKeys);
  return is_worth_it ? group : 1;
}

// Whether reading keys and values once saves more than copies of queries and outputs take, which
// those of a group need that do not lie one behind the other.
bool is_worth_copies(const graph::Ir& ir, const Operator& op, std::int64_t group) {
  constexpr std::int64_t kFewestBytes = 64 << 20;  // 12 us out of L2; two copies are 5 us
  const graph::Value& k = graph::value_at(ir, op.inputs[1]);
  const graph::Value& v = graph::value_at(ir, op.inputs[2]);
  const std::int64_t rows = group * graph::value_at(ir, op.inputs[0]).shape[2].value();
  const std::int64_t bytes =
      (k.shape.element_count().value() + v.shape.element_count().value()) * size_bytes(k.dtype);
  return 4 * rows <= k.shape[2].value() && bytes >= kFewestBytes;
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
      rewrite_attention(
          ir, i,
          [&](AttentionRewriter& graph, const Operator& op) {
            add_attention_of_rows(graph, op, group);
          },
          is_worth_copies(ir, ir.operators[i], group));
    }
  }
  return ir;
}

}  // namespace stof::fusion
