#include "graph/normalise.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/append.hpp"
#include "graph/masking.hpp"
#include "graph/op_info.hpp"

namespace stof::graph {

namespace {

bool is_binary(OpKind kind) {
  return kind >= OpKind::Add && kind <= OpKind::Minimum;
}

// Rebuilds a graph operator by operator.
class Normaliser {
 public:
  Normaliser(const Ir& from, bool keeps_attention)
      : from_(from), keeps_attention_(keeps_attention), ids_(from.values.size(), -1) {
    to_.name = from.name;
    to_.dims = from.dims;
    for (std::size_t id = 0; id < from.values.size(); ++id) {
      if (from.values[id]->role != ValueRole::Result) {
        ids_[id] = append_value(to_, *from.values[id]);
      }
    }
    for (const Operator& op : from.operators) {
      next_segment_ = std::max(next_segment_, op.segment + 1);
    }
  }

  Ir run() {
    for (const Operator& op : from_.operators) {
      if (op.kind == OpKind::Linear) {
        linear(op);
      } else if (op.kind == OpKind::Attention && !keeps_attention_) {
        attention(op);
      } else {
        copy(op);
      }
    }
    for (const Output& output : from_.outputs) {
      append_output(to_, output.name, id(output.value));
    }
    for (const auto& [capture, value] : from_.captures) {
      to_.captures.emplace(capture, id(value));
    }
    return std::move(to_);
  }

 private:
  int id(int old) const { return old < 0 ? -1 : ids_[static_cast<std::size_t>(old)]; }
  int input(const Operator& op, int position) const { return id(input_or_none(op, position)); }
  const Value& old_value(int id) const { return *from_.values[static_cast<std::size_t>(id)]; }

  // Appends what gives these results of the old graph, under their names.
  void finish(std::span<const int> old_results, Operator op) {
    std::vector<std::string> names;
    for (const int old : old_results) {
      names.push_back(old_value(old).name);
    }
    op.outputs.assign(names.size(), -1);
    const std::vector<int> results = append(to_, std::move(op), names);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ids_[static_cast<std::size_t>(old_results[i])] = results[i];
    }
  }

  // Appends a step on the way to what `old` gives, named after both.
  int step(const Operator& old, Operator op) {
    std::string step_name = fmt::format("{}.{}", old_value(old.outputs[0]).name, name(op.kind));
    while (to_.ids.contains(step_name) || from_.ids.contains(step_name)) {
      step_name += '_';
    }
    std::vector<std::string> names = {std::move(step_name)};
    const bool gives_lse = op.kind == OpKind::Softmax && old.outputs.size() == 2;
    if (gives_lse) {
      names.push_back(old_value(old.outputs[1]).name);
    }
    op.outputs.assign(names.size(), -1);
    const std::vector<int> results = append(to_, std::move(op), names);
    if (gives_lse) {
      ids_[static_cast<std::size_t>(old.outputs[1])] = results[1];
    }
    return results[0];
  }

  void copy(const Operator& old) {
    Operator op = old;
    for (int& value : op.inputs) {
      value =
          keeps_attention_ && is_partly_constant(old, value) ? broadcast(old, value) : id(value);
    }
    for (auto& [capture, value] : op.captures) {
      value = id(value);
    }
    finish(old.outputs, std::move(op));
  }

  // Whether an operand of a matmul or an elementwise operator is the same along some of the axes of
  // the result, but not along all of the leading ones, in a way that kernels do not take.
  bool is_partly_constant(const Operator& old, int operand) const {
    constexpr int kAxesOfKernels = 4;
    const bool is_product = old.kind == OpKind::MatMul;
    const Shape& result = old_value(old.outputs[0]).shape;
    const bool is_long = is_binary(old.kind) && result.rank() > kAxesOfKernels;
    if (!is_product && !is_long) {
      return false;
    }
    const Shape& shape = old_value(operand).shape;
    bool is_constant = false;
    bool is_varying = false;
    for (int axis = is_product ? 3 : 1; axis <= result.rank(); ++axis) {
      const bool varies = axis <= shape.rank() && !(shape[-axis] == Dim(1));
      is_varying = is_varying || varies;
      is_constant = is_constant || (!varies && !(result[-axis] == Dim(1)));
    }
    return is_constant && is_varying;
  }

  // The operand along all axes of the result that it takes part in.
  int broadcast(const Operator& old, int operand) {
    const Shape& result = old_value(old.outputs[0]).shape;
    std::vector<Dim> dims(result.dims().begin(), result.dims().end());
    if (old.kind == OpKind::MatMul) {
      const std::span<const Dim> matrix = old_value(operand).shape.dims().last(2);
      std::copy(matrix.begin(), matrix.end(), dims.end() - 2);
    }
    return step(old, {.kind = OpKind::Broadcast,
                      .inputs = {id(operand)},
                      .attributes = {{"shape", Shape(std::move(dims))}},
                      .segment = old.segment});
  }

  void linear(const Operator& old) {
    const bool is_out_in = old_value(old.inputs[1]).layout == WeightLayout::OutIn;
    Operator product{.kind = OpKind::MatMul,
                     .inputs = {input(old, 0), input(old, 1)},
                     .attributes = {{"transpose_a", false}, {"transpose_b", is_out_in}},
                     .segment = old.segment};
    const int bias = input(old, 2);
    if (bias < 0) {
      finish(old.outputs, std::move(product));
      return;
    }
    const int sum = step(old, std::move(product));
    finish(old.outputs, {.kind = OpKind::Add, .inputs = {sum, bias}, .segment = old.segment});
  }

  void attention(const Operator& old) {
    const int segment = old.segment < 0 ? next_segment_++ : old.segment;
    Operator product = attention_matmul(old, segment);
    product.inputs = {input(old, 0), input(old, 1)};
    product.attributes.at("transpose_b") = true;
    product.attributes.emplace("dtype", DType::Float32);
    int scores = step(old, std::move(product));
    scores = step(old, {.kind = OpKind::Scale,
                        .inputs = {scores},
                        .attributes = {{"factor", attribute<double>(old, "scale")}},
                        .segment = segment});
    if (old.attributes.contains("score")) {
      scores = step(old, with_captures(old, {.kind = OpKind::Score,
                                             .inputs = {scores},
                                             .attributes = {{"score", old.attributes.at("score")}},
                                             .segment = segment}));
    }
    scores = step(old, with_captures(old, attention_mask(old, scores, segment)));
    probabilities_times_v(old, scores, segment);
  }

  Operator attention_matmul(const Operator& old, int segment) const {
    Operator op{.kind = OpKind::MatMul,
                .attributes = {{"transpose_a", false}, {"transpose_b", false}},
                .segment = segment};
    const Dim& heads = old_value(old.inputs[0]).shape[1];
    const Dim& kv_heads = old_value(old.inputs[1]).shape[1];
    if (!(heads == kv_heads)) {
      op.attributes.emplace("group", heads.value() / kv_heads.value());
    }
    return op;
  }

  Operator attention_mask(const Operator& old, int scores, int segment) const {
    Operator op{.kind = OpKind::Mask, .inputs = {scores}, .segment = segment};
    for (std::size_t i = 3; i < old.inputs.size(); ++i) {
      op.inputs.push_back(id(old.inputs[i]));
    }
    for (const AttributeInfo& info : op_info(OpKind::Mask).attributes) {
      const auto found = old.attributes.find(std::string(info.name));
      if (found != old.attributes.end()) {
        op.attributes.insert(*found);
      }
    }
    return op;
  }

  void probabilities_times_v(const Operator& old, int scores, int segment) {
    const int probabilities =
        step(old, {.kind = OpKind::Softmax, .inputs = {scores}, .segment = segment});
    Operator product = attention_matmul(old, segment);
    product.inputs = {probabilities, input(old, 2)};
    product.attributes.emplace("dtype", old_value(old.outputs[0]).dtype);
    finish(std::span(old.outputs).first(1), std::move(product));
  }

  // The operator with those captures of `old` that it reads.
  Operator with_captures(const Operator& old, Operator op) const {
    for (const std::string& capture : captures_read(op)) {
      op.captures.emplace(capture, id(old.captures.at(capture)));
    }
    return op;
  }

  const Ir& from_;
  bool keeps_attention_;
  Ir to_;
  std::vector<int> ids_;  // of from_ -> of to_
  int next_segment_ = 0;
};

}  // namespace

Ir normalise(const Ir& ir) {
  return Normaliser(ir, false).run();
}

Ir normalise_but_attention(const Ir& ir) {
  return Normaliser(ir, true).run();
}

}  // namespace stof::graph
