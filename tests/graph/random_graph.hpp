#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "graph/encode.hpp"
#include "graph/ir.hpp"
#include "stof/graph.hpp"

namespace stof::graph {

// Draws graphs with every kind of operator, attribute, mask and symbolic extent.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed)
      : random_(seed),
        graph_("random"),
        seq_(draw(2) == 0 ? graph_.dim("seq", 1, 512) : Dim(kSeq)) {}

  Graph build(int operators) {
    pool_ = {activation_input(), activation_input()};
    for (int i = 0; i < operators; ++i) {
      pool_.push_back(grow());
    }
    const int outputs = 1 + draw(3);
    for (int i = 0; i < outputs; ++i) {
      graph_.output("out" + std::to_string(i), i == 0 ? pool_.back() : pick());
    }
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kBatch = 2;
  static constexpr std::int64_t kSeq = 8;
  static constexpr std::int64_t kHidden = 16;
  static constexpr std::int64_t kHeads = 4;

  int draw(int count) { return std::uniform_int_distribution(0, count - 1)(random_); }
  Tensor pick() { return pool_[static_cast<std::size_t>(draw(static_cast<int>(pool_.size())))]; }
  std::string fresh() { return "t" + std::to_string(names_++); }

  Tensor activation_input() {
    return graph_.input(fresh(), {kBatch, seq_, kHidden}, DType::Float16);
  }
  Tensor weight(const Shape& shape) {
    const auto layout = draw(2) == 0 ? WeightLayout::OutIn : WeightLayout::InOut;
    return graph_.weight(fresh(), shape, DType::Float16, {.layout = layout});
  }
  Tensor vector() { return graph_.weight(fresh(), {kHidden}, DType::Float16); }

  Mask mask() {
    switch (draw(6)) {
      case 0:
        return causal() && sliding_window(3 + draw(3), 1);
      case 1:
        return documents({0, 3, 8});
      case 2: {
        Table table("limits", std::vector<std::int64_t>{1, 2, 5, draw(9)});
        return key_position() < table[query_position() % 4] || causal();
      }
      case 3:
        if (seq_.is_static()) {
          HostTensor keep(DType::Bool, {kSeq, kSeq});
          for (std::int64_t i = 0; i < kSeq * kSeq; ++i) {
            keep.set(i, i == 0 || draw(2) == 0 ? 1 : 0);
          }
          const Mask dense = Mask::dense(keep.view());
          return draw(2) == 0 ? dense : dense || causal();
        }
        return prefix(2);
      case 4: {
        const Tensor keep = graph_.input(fresh(), {kBatch, seq_}, DType::Bool);
        return key_padding(graph_.capture(keep)) || key_position() == 0;
      }
      default:
        return {};
    }
  }

  Tensor attention() {
    const Tensor x = pick();
    const std::int64_t kv_heads = draw(2) == 0 ? kHeads : 2;
    const Tensor q = graph_.split_heads(x, kHeads);
    const Tensor kv = graph_.reshape(graph_.slice(pick(), 2, 0, kv_heads * (kHidden / kHeads)),
                                     {kBatch, seq_, kv_heads, kHidden / kHeads});
    const Tensor k = graph_.transpose(kv, {0, 2, 1, 3});
    AttentionOptions options{.mask = mask()};
    if (draw(3) == 0) {
      const Tensor slope = graph_.weight(fresh(), {kHeads}, DType::Float32);
      options.score = score() + graph_.capture(slope)(head_index()) *
                                    to_float(key_position() - query_position());
    }
    if (draw(3) == 0) {
      options.kv_lengths = graph_.input(fresh(), {kBatch}, DType::Int32);
    }
    if (draw(3) == 0) {
      options.mask_input =
          graph_.mask_input(fresh(), {seq_, 20},
                            {.form = MaskForm::Csr, .max_part_tiles = draw(9), .like = causal()});
    }
    if (draw(3) == 0) {
      const AttentionResult result = graph_.attention_with_lse(q, k, k, options);
      graph_.output(fresh(), result.lse);
      return graph_.merge_heads(result.output);
    }
    return graph_.merge_heads(graph_.attention(q, k, k, options));
  }

  Tensor grow() {
    switch (draw(14)) {
      case 0:
        return graph_.linear(pick(), weight({kHidden, kHidden}),
                             draw(2) == 0 ? vector() : Tensor());
      case 1:
        return graph_.add(pick(), pick());
      case 2:
        return graph_.multiply(graph_.silu(pick()), pick());
      case 3:
        return graph_.layer_norm(pick(), vector(), draw(2) == 0 ? vector() : Tensor());
      case 4:
        return graph_.rms_norm(pick(), vector(), 1e-6 * (1 + draw(3)));
      case 5:
        return graph_.scale(pick(), 0.1 * (1 + draw(5)));
      case 6:
        return graph_.cast(graph_.shift(graph_.cast(pick(), DType::Float32), 1.0 / 3),
                           DType::Float16);
      case 7:
        return graph_.slice(graph_.concat({pick(), pick()}, 2), 2, draw(8), kHidden);
      case 8:
        return graph_.add(
            pick(), graph_.broadcast(graph_.reduce_mean(pick(), 1, true), {kBatch, seq_, kHidden}));
      case 9:
        return graph_.merge_heads(
            graph_.rotary(graph_.split_heads(pick(), kHeads),
                          {.style = draw(2) == 0 ? RotaryStyle::Half : RotaryStyle::Interleaved,
                           .position = draw(4)}));
      case 10:
        return graph_.embedding(weight({100, kHidden}),
                                graph_.input(fresh(), {kBatch, seq_}, DType::Int64));
      default:
        return attention();
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  Dim seq_;
  std::vector<Tensor> pool_;
  int names_ = 0;
};

// The same graph built in another order: values, operators and outputs are permuted. Names become
// others, but for those of captures.
struct Shuffled {
  Ir ir;
  std::vector<int> new_ids;      // of the values
  std::vector<int> new_outputs;  // where each output is now
};

inline Shuffled shuffle(const Ir& from, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Shuffled result;
  Ir& to = result.ir;
  to.name = "shuffled";
  to.dims = from.dims;
  result.new_ids.assign(from.values.size(), -1);
  std::vector<int> order(from.values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  for (const int old : order) {
    const int id = static_cast<int>(to.values.size());
    Value value = *from.values[static_cast<std::size_t>(old)];
    value.name = "renamed_" + std::to_string(id);
    to.ids.emplace(value.name, id);
    to.values.push_back(std::make_shared<const Value>(std::move(value)));
    result.new_ids[static_cast<std::size_t>(old)] = id;
  }
  const auto renumber = [&](int id) {
    return id < 0 ? -1 : result.new_ids[static_cast<std::size_t>(id)];
  };
  std::vector<bool> is_placed(from.operators.size());
  const auto is_ready = [&](std::size_t index) {
    const std::vector<int> operands = operand_ids(from.operators[index]);
    return !is_placed[index] && std::ranges::all_of(operands, [&](int id) {
      const int producer = from.values[static_cast<std::size_t>(id)]->producer;
      return producer < 0 || is_placed[static_cast<std::size_t>(producer)];
    });
  };
  while (to.operators.size() < from.operators.size()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < from.operators.size(); ++i) {
      if (is_ready(i)) {
        ready.push_back(i);
      }
    }
    const std::size_t next = ready[random() % ready.size()];
    is_placed[next] = true;
    Operator op = from.operators[next];
    std::ranges::transform(op.inputs, op.inputs.begin(), renumber);
    for (int& id : op.outputs) {
      id = renumber(id);
      auto& value = to.values[static_cast<std::size_t>(id)];
      Value made = *value;
      made.producer = static_cast<int>(to.operators.size());
      value = std::make_shared<const Value>(std::move(made));
    }
    for (auto& [name, id] : op.captures) {
      id = renumber(id);
    }
    to.operators.push_back(std::move(op));
  }
  std::vector<std::size_t> outputs(from.outputs.size());
  std::iota(outputs.begin(), outputs.end(), std::size_t{0});
  std::ranges::shuffle(outputs, random);
  result.new_outputs.assign(outputs.size(), -1);
  for (const std::size_t old : outputs) {
    result.new_outputs[old] = static_cast<int>(to.outputs.size());
    to.outputs.push_back({.name = "y" + std::to_string(to.outputs.size()),
                          .value = renumber(from.outputs[old].value)});
  }
  return result;
}

}  // namespace stof::graph
