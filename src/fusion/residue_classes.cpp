#include "fusion/residue_classes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "expr/transform.hpp"
#include "fusion/placement.hpp"
#include "graph/op_info.hpp"
#include "mask/layout.hpp"
#include "mask/node.hpp"

namespace stof::fusion {

namespace {

using graph::Operator;
using graph::OpKind;

constexpr std::size_t kOperands = 3;  // q, k and v

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

const Expr& predicate_of(const Operator& attention) {
  return std::get<Expr>(graph::find_attribute<Mask>(attention, "mask")->node().form);
}

// What an attention may be cut into; 1: nothing.
std::int64_t class_count(const graph::Ir& ir, const Operator& op) {
  const auto* mask = graph::find_attribute<Mask>(op, "mask");
  if (op.kind != OpKind::Attention || mask == nullptr || !mask->is_expression() ||
      mask->has_captures() || mask->uses_batch() || mask->uses_head() ||
      op.inputs.size() != kOperands || op.outputs.size() != 1 ||
      graph::find_attribute<Expr>(op, "score") != nullptr) {
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

double active_tiles(const mask::MaskFeatures& features) {
  return static_cast<double>(features.full_tiles + features.part_tiles);
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
  const Shape& q = graph::value_at(ir, op.inputs[0]).shape;
  const std::int64_t kv_len = graph::value_at(ir, op.inputs[1]).shape[2].value();
  const mask::Extent extent{
      .batch = q[0].value(), .heads = q[1].value(), .q_len = q[2].value(), .kv_len = kv_len};
  const mask::Extent of_classes{.batch = extent.batch * extent.heads,
                                .heads = n,
                                .q_len = extent.q_len / n,
                                .kv_len = kv_len / n};
  const auto before = masks.get(predicate_of(op), extent);
  const auto after = masks.get(mask_of_class(predicate_of(op), n), of_classes);
  const double most = are_short_bands(*after) ? 1.0 : kMostTiles;
  return active_tiles(after->features()) <= most * active_tiles(before->features());
}

// Rewrites one operator of a graph, whose others it takes over as they are.
class Rewriter {
 public:
  Rewriter(const graph::Ir& ir, std::size_t place, std::int64_t n)
      : ir_(ir), place_(place), n_(n) {}

  graph::Ir run() {
    const std::vector<Operator> operators = std::exchange(ir_.operators, {});
    for (std::size_t i = 0; i < operators.size(); ++i) {
      if (i == place_) {
        add_attention(operators[i]);
      } else {
        add(operators[i]);
      }
    }
    return std::move(ir_);
  }

 private:
  void add(Operator op) {
    for (const int output : op.outputs) {
      graph::Value value = graph::value_at(ir_, output);
      value.producer = static_cast<int>(ir_.operators.size());
      ir_.values[graph::at(output)] = std::make_shared<const graph::Value>(std::move(value));
    }
    ir_.operators.push_back(std::move(op));
  }

  int add_value(int like, const std::array<std::int64_t, 4>& extents) {
    const graph::Value& other = graph::value_at(ir_, like);
    const auto id = static_cast<int>(ir_.values.size());
    graph::Value value{.name = fmt::format("{}.class{}", other.name, id),
                       .shape = Shape::of(extents),
                       .dtype = other.dtype};
    ir_.ids.emplace(value.name, id);
    ir_.values.push_back(std::make_shared<const graph::Value>(std::move(value)));
    return id;
  }

  void add_reshape(int from, int to) {
    add({.kind = OpKind::Reshape,
         .inputs = {from},
         .outputs = {to},
         .attributes = {{"shape", graph::value_at(ir_, to).shape}}});
  }
  void add_transpose(int from, int to) {
    add({.kind = OpKind::Transpose,
         .inputs = {from},
         .outputs = {to},
         .attributes = {{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}});
  }

  // [batch, heads, length, width] as [batch * heads, length / n, n, width], or with the second and
  // third axis exchanged.
  int add_split(int value) {
    const auto [joined, length, width] = extents_of(value);
    return add_value(value, {joined, length, n_, width});
  }
  int add_classes(int value) {
    const auto [joined, length, width] = extents_of(value);
    return add_value(value, {joined, n_, length, width});
  }
  std::array<std::int64_t, 3> extents_of(int value) const {
    const Shape& shape = graph::value_at(ir_, value).shape;
    return {shape[0].value() * shape[1].value(), shape[2].value() / n_, shape[3].value()};
  }

  void add_attention(Operator op) {
    for (int& input : op.inputs) {
      const int split = add_split(input);
      add_reshape(input, split);
      input = add_classes(input);
      add_transpose(split, input);
    }
    const int output = op.outputs[0];
    const int classes = add_classes(output);
    const int split = add_split(output);
    op.outputs[0] = classes;
    op.attributes["mask"] = mask_of_class(predicate_of(op), n_);
    add(std::move(op));
    add_transpose(classes, split);
    add_reshape(split, output);
  }

  graph::Ir ir_;
  std::size_t place_;
  std::int64_t n_;
};

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

graph::Ir with_residue_classes(graph::Ir ir, MaskArraysByMask& masks) {
  for (std::size_t i = 0; i < ir.operators.size(); ++i) {
    const std::int64_t n = class_count(ir, ir.operators[i]);
    if (n == 1 || !pays(ir, ir.operators[i], n, masks)) {
      continue;
    }
    graph::Ir rewritten = Rewriter(ir, i, n).run();
    if (needs_no_copy(ir, rewritten)) {
      ir = std::move(rewritten);
      i += 2 * kOperands;  // the attention stands behind the views of its operands now
    }
  }
  return ir;
}

}  // namespace stof::fusion
