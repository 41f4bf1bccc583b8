#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "testing.hpp"

// Attention by its definition, one query and key at a time.
namespace stof::testing {

struct Position {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;
  std::int64_t key = 0;
};

using Visible = std::function<bool(const Position&)>;
using ScoreOf = std::function<double(double score, const Position&)>;

struct AttentionValues {
  Values output;
  Values lse;
};

inline AttentionValues naive_attention(const HostTensor& q, const HostTensor& k,
                                       const HostTensor& v, double scale, const Visible& visible,
                                       const ScoreOf& score = {}) {
  const std::int64_t batch = q.shape()[0];
  const std::int64_t heads = q.shape()[1];
  const std::int64_t q_len = q.shape()[2];
  const std::int64_t head_dim = q.shape()[3];
  const std::int64_t kv_heads = k.shape()[1];
  const std::int64_t kv_len = k.shape()[2];
  const std::int64_t value_dim = v.shape()[3];
  AttentionValues result;
  for (std::int64_t row = 0; row < batch * heads * q_len; ++row) {
    Position at{.batch = row / (heads * q_len), .head = row / q_len % heads, .query = row % q_len};
    const std::int64_t kv_row = (at.batch * kv_heads + at.head / (heads / kv_heads)) * kv_len;
    Values sums(static_cast<std::size_t>(value_dim));
    double total = 0;
    for (at.key = 0; at.key < kv_len; ++at.key) {
      if (!visible(at)) {
        continue;
      }
      double dot = 0;
      for (std::int64_t d = 0; d < head_dim; ++d) {
        dot += q.at(row * head_dim + d) * k.at((kv_row + at.key) * head_dim + d);
      }
      const double weight = std::exp(score ? score(dot * scale, at) : dot * scale);
      total += weight;
      for (std::int64_t d = 0; d < value_dim; ++d) {
        sums[static_cast<std::size_t>(d)] += weight * v.at((kv_row + at.key) * value_dim + d);
      }
    }
    for (const double sum : sums) {
      result.output.push_back(total == 0 ? 0.0 : sum / total);
    }
    result.lse.push_back(total == 0 ? -std::numeric_limits<double>::infinity() : std::log(total));
  }
  return result;
}

struct AttentionSizes {
  std::int64_t batch = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t q_len = 67;
  std::int64_t kv_len = 131;
  std::int64_t head_dim = 5;
  std::int64_t value_dim = 3;
};

inline HostTensors attention_inputs(const AttentionSizes& sizes, DType dtype = DType::Float32) {
  HostTensors tensors;
  tensors["q"] = random_tensor({sizes.batch, sizes.heads, sizes.q_len, sizes.head_dim}, 1, dtype);
  tensors["k"] =
      random_tensor({sizes.batch, sizes.kv_heads, sizes.kv_len, sizes.head_dim}, 2, dtype);
  tensors["v"] =
      random_tensor({sizes.batch, sizes.kv_heads, sizes.kv_len, sizes.value_dim}, 3, dtype);
  return tensors;
}

// Fills in options that need the graph, such as captures of further inputs.
using MakeOptions = std::function<AttentionOptions(Graph&)>;

// Attention over the inputs q, k and v, with the outputs "y" and "lse".
inline Graph attention_graph(HostTensors& tensors, const MakeOptions& make_options) {
  Graph graph;
  const Tensor q = input_like(graph, "q", tensors.at("q"));
  const Tensor k = input_like(graph, "k", tensors.at("k"));
  const Tensor v = input_like(graph, "v", tensors.at("v"));
  const AttentionResult result = graph.attention_with_lse(q, k, v, make_options(graph));
  graph.output("y", result.output);
  graph.output("lse", result.lse);
  return graph;
}

// Attention as one operator and as its five: both are what the definition says.
inline void check_attention(HostTensors& tensors, const MakeOptions& make_options,
                            const Visible& visible, const ScoreOf& score = {},
                            std::optional<double> scale = {}) {
  const Graph graph = attention_graph(tensors, make_options);
  const auto head_dim = static_cast<double>(tensors.at("q").shape()[3]);
  const AttentionValues expected =
      naive_attention(tensors.at("q"), tensors.at("k"), tensors.at("v"),
                      scale.value_or(1 / std::sqrt(head_dim)), visible, score);
  for (const Graph& form : {graph, normalised(graph)}) {
    const auto outputs = run_exactly(form, tensors);
    check_close(outputs.at("y").values, expected.output);
    check_close(outputs.at("lse").values, expected.lse);
  }
}

inline void check_mask(const Mask& mask, const Visible& visible, const AttentionSizes& sizes = {}) {
  HostTensors tensors = attention_inputs(sizes);
  check_attention(
      tensors, [&](Graph&) { return AttentionOptions{.mask = mask}; }, visible);
}

}  // namespace stof::testing
