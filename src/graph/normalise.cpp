#include "graph/normalise.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

// Rebuilds a graph operator by operator.
class Normaliser {
 public:
  explicit Normaliser(const Ir& from) : from_(from), ids_(from.values.size(), -1) {
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
      switch (op.kind) {
        case OpKind::Linear:
          linear(op);
          break;
        case OpKind::Attention:
          attention(op);
          break;
        default:
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

  // Appends what stands for the operator `old`, under the names of its results.
  void finish(const Operator& old, Operator op) {
    std::vector<std::string> names;
    for (const int result : old.outputs) {
      names.push_back(old_value(result).name);
    }
    op.outputs.assign(old.outputs.size(), -1);
    const std::vector<int> results = append(to_, std::move(op), names);
    for (std::size_t i = 0; i < results.size(); ++i) {
      ids_[static_cast<std::size_t>(old.outputs[i])] = results[i];
    }
  }

  // Appends a step on the way to what `old` gives, named after both.
  std::vector<int> step(const Operator& old, Operator op, std::size_t result_count = 1) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < result_count; ++i) {
      std::string step_name =
          fmt::format("{}.{}", old_value(old.outputs[0]).name, i == 0 ? name(op.kind) : "lse");
      while (to_.ids.contains(step_name) || from_.ids.contains(step_name)) {
        step_name += '_';
      }
      names.push_back(std::move(step_name));
    }
    op.outputs.assign(result_count, -1);
    return append(to_, std::move(op), names);
  }

  void copy(const Operator& old) {
    Operator op = old;
    for (int& value : op.inputs) {
      value = id(value);
    }
    for (auto& [capture, value] : op.captures) {
      value = id(value);
    }
    finish(old, std::move(op));
  }

  void linear(const Operator& old) {
    const bool is_out_in = old_value(old.inputs[1]).layout == WeightLayout::OutIn;
    Operator product{.kind = OpKind::MatMul,
                     .inputs = {input(old, 0), input(old, 1)},
                     .attributes = {{"transpose_a", false}, {"transpose_b", is_out_in}},
                     .segment = old.segment};
    const int bias = input(old, 2);
    if (bias < 0) {
      finish(old, std::move(product));
      return;
    }
    const int sum = step(old, std::move(product))[0];
    finish(old, {.kind = OpKind::Add, .inputs = {sum, bias}, .segment = old.segment});
  }

  void attention(const Operator& old) {
    const int segment = old.segment < 0 ? next_segment_++ : old.segment;
    Operator product = attention_matmul(old, segment);
    product.inputs = {input(old, 0), input(old, 1)};
    product.attributes.at("transpose_b") = true;
    product.attributes.emplace("dtype", DType::Float32);
    int scores = step(old, std::move(product))[0];
    scores = step(old, {.kind = OpKind::Scale,
                        .inputs = {scores},
                        .attributes = {{"factor", attribute<double>(old, "scale")}},
                        .segment = segment})[0];
    if (old.attributes.contains("score")) {
      scores = step(old, with_captures(old, {.kind = OpKind::Score,
                                             .inputs = {scores},
                                             .attributes = {{"score", old.attributes.at("score")}},
                                             .segment = segment}))[0];
    }
    scores = step(old, with_captures(old, attention_mask(old, scores, segment)))[0];
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
    const std::vector<int> softmax = step(
        old, {.kind = OpKind::Softmax, .inputs = {scores}, .segment = segment}, old.outputs.size());
    Operator product = attention_matmul(old, segment);
    product.inputs = {softmax[0], input(old, 2)};
    product.attributes.emplace("dtype", old_value(old.outputs[0]).dtype);
    Operator only_output = old;
    only_output.outputs.resize(1);
    finish(only_output, std::move(product));
    if (old.outputs.size() == 2) {
      ids_[static_cast<std::size_t>(old.outputs[1])] = softmax[1];
    }
  }

  // The operator with those captures of `old` that it reads.
  Operator with_captures(const Operator& old, Operator op) const {
    for (const std::string& capture : captures_read(op)) {
      op.captures.emplace(capture, id(old.captures.at(capture)));
    }
    return op;
  }

  const Ir& from_;
  Ir to_;
  std::vector<int> ids_;  // of from_ -> of to_
  int next_segment_ = 0;
};

}  // namespace

Ir normalise(const Ir& ir) {
  return Normaliser(ir).run();
}

}  // namespace stof::graph
