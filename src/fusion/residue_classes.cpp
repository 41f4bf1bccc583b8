#include "fusion/residue_classes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "expr/node.hpp"
#include "expr/transform.hpp"
#include "fusion/attention_rewriter.hpp"
#include "graph/op_info.hpp"
#include "mask/layout.hpp"
#include "mask/node.hpp"

namespace stof::fusion {

namespace {

using graph::Operator;

bool is_difference(const Expr& expr) {
  const Expr q = query_position();
  const Expr k = key_position();
  const std::array forms = {q - k, k - q, abs(q - k), abs(k - q)};
  return std::ranges::any_of(forms, [&](const Expr& form) { return expr::same(expr, form); });
}

bool is_integer(const Expr& expr, std::int64_t value) {
  const auto given = expr::literal(expr);
  return given && *given == expr::Value(value);
}

// The greatest n known, within kMaxLength, of which the distance of a key that is seen is a
// multiple.
std::int64_t distance_step(const Expr& predicate) {
  const expr::Node& node = predicate.node();
  if (node.op == expr::Op::And) {
    const std::int64_t left = distance_step(node.operands[0]);
    const std::int64_t both = std::lcm(left, distance_step(node.operands[1]));
    return both <= mask::kMaxLength ? both : left;
  }
  if (node.op != expr::Op::Equal || !is_integer(node.operands[1], 0)) {
    return 1;
  }
  const expr::Node& rest = node.operands[0].node();
  if (rest.op != expr::Op::Modulo || !is_difference(rest.operands[0])) {
    return 1;
  }
  const auto literal = expr::literal(rest.operands[1]);
  const std::int64_t step = literal ? std::get<std::int64_t>(*literal) : 1;
  return step >= 1 && step <= mask::kMaxLength ? step : 1;
}

// Of every n-th position; the head says from which one on.
Mask mask_of_class(const Expr& predicate, std::int64_t n) {
  return expr::fold(expr::substitute(predicate, {{"q_pos", query_position() * n + head_index()},
                                                 {"k_pos", key_position() * n + head_index()},
                                                 {"q_len", query_length() * n},
                                                 {"kv_len", key_length() * n}}));
}

// What an attention may be cut into; 1: nothing.
std::int64_t class_count(const graph::Ir& ir, const Operator& op) {
  constexpr std::size_t kOperands = 3;  // a class has numbers of keys of its own
  if (!is_plain(op) || op.inputs.size() != kOperands || op.outputs.size() > 1) {
    return 1;
  }
  const std::int64_t n = distance_step(predicate_of(op));
  const auto extent = [&](std::size_t input, int axis) {
    return graph::value_at(ir, op.inputs[input]).shape[axis].value();
  };
  const auto are_cut = [&](std::int64_t length) {
    return length % n == 0 && length / n >= mask::kTile;
  };
  const bool has_a_key_head_each = extent(0, 1) == extent(1, 1);
  return n > 1 && has_a_key_head_each && are_cut(extent(0, 2)) && are_cut(extent(1, 2)) ? n : 1;
}

// Whether the keys of 64 queries are a run that the kernel for bands takes at once.
bool are_short_bands(MaskArrays& arrays) {
  constexpr std::int64_t kMostAtOnce = 192;
  const std::optional<mask::Band>& band = arrays.band();
  return band && mask::kTile - 1 + band->end - band->first <= kMostAtOnce;
}

// By times on an H200: where rows are so short that classes leave nearly as many tiles, a mask with
// gaps is faster, unless what they leave are short bands, for which there are no lists to read.
bool pays(const graph::Ir& ir, const Operator& op, std::int64_t n, MaskArraysByMask& masks) {
  constexpr double kMostTiles = 0.8;
  const mask::Extent extent = extent_of(ir, op);
  const mask::Extent of_classes{.batch = extent.batch * extent.heads,
                                .heads = n,
                                .q_len = extent.q_len / n,
                                .kv_len = extent.kv_len / n};
  const auto before = masks.get(predicate_of(op), extent);
  const auto after = masks.get(mask_of_class(predicate_of(op), n), of_classes);
  const double most = are_short_bands(*after) ? 1.0 : kMostTiles;
  return static_cast<double>(after->features().active_tiles()) <=
         most * static_cast<double>(before->features().active_tiles());
}

// [batch, heads, length, width] as [batch * heads, length / n, n, width], whose second and third
// axis change places then.
void add_attention_of_classes(AttentionRewriter& graph, Operator op, std::int64_t n) {
  const auto extents = [&](int value) {
    const Shape& shape = graph.shape(value);
    return std::array{shape[0].value() * shape[1].value(), shape[2].value() / n, shape[3].value()};
  };
  const auto add_split = [&](int value) {
    const auto [joined, length, width] = extents(value);
    return graph.add_value(value, std::array{joined, length, n, width});
  };
  const auto add_classes = [&](int value) {
    const auto [joined, length, width] = extents(value);
    return graph.add_value(value, std::array{joined, n, length, width});
  };
  for (int& input : op.inputs) {
    const int split = add_split(input);
    graph.add_reshape(input, split);
    input = add_classes(input);
    graph.add_transpose(split, input);
  }
  const int output = op.outputs[0];
  const int classes = add_classes(output);
  const int split = add_split(output);
  op.outputs[0] = classes;
  op.attributes["mask"] = mask_of_class(predicate_of(op), n);
  graph.add(std::move(op));
  graph.add_transpose(classes, split);
  graph.add_reshape(split, output);
}

}  // namespace

graph::Ir with_residue_classes(graph::Ir ir, MaskArraysByMask& masks) {
  for (std::size_t i = 0; i < ir.operators.size(); ++i) {
    const std::int64_t n = class_count(ir, ir.operators[i]);
    if (n > 1 && pays(ir, ir.operators[i], n, masks)) {
      rewrite_attention(ir, i, [&](AttentionRewriter& graph, const Operator& op) {
        add_attention_of_classes(graph, op, n);
      });
    }
  }
  return ir;
}

}  // namespace stof::fusion
