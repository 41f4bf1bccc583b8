#pragma once

#include <cstdint>
#include <string>

#include "stof/graph.hpp"

namespace stof::graph {

// BERT layer: fused QKV projection, attention, residual and LayerNorm after each half.
inline Graph bert_layer(const Dim& seq = 128, const Mask& mask = {}) {
  Graph graph("bert_layer");
  constexpr std::int64_t kHidden = 768;
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return graph.weight(name, shape, DType::Float16);
  };
  const Tensor x = graph.input("x", {8, seq, kHidden}, DType::Float16);
  const Tensor qkv =
      graph.linear(x, weight("w_qkv", {3 * kHidden, kHidden}), weight("b_qkv", {3 * kHidden}));
  const QkvHeads heads = graph.split_qkv(qkv, {.heads = 12});
  const Tensor context =
      graph.merge_heads(graph.attention(heads.q, heads.k, heads.v, {.mask = mask}));
  const Tensor projected =
      graph.linear(context, weight("w_o", {kHidden, kHidden}), weight("b_o", {kHidden}));
  const Tensor middle = graph.layer_norm(graph.add(projected, x), weight("gamma_1", {kHidden}),
                                         weight("beta_1", {kHidden}));
  const Tensor up = graph.gelu(
      graph.linear(middle, weight("w_up", {4 * kHidden, kHidden}), weight("b_up", {4 * kHidden})));
  const Tensor down =
      graph.linear(up, weight("w_down", {kHidden, 4 * kHidden}), weight("b_down", {kHidden}));
  graph.output("y", graph.layer_norm(graph.add(down, middle), weight("gamma_2", {kHidden}),
                                     weight("beta_2", {kHidden})));
  return graph;
}

// LLaMA layer: RMSNorm first, rotary positions, grouped heads, gated SiLU; the keys and values go
// out.
inline Graph llama_layer() {
  Graph graph("llama_layer");
  const Dim seq = graph.dim("seq", 1, 4096);
  constexpr std::int64_t kHidden = 512;
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return graph.weight(name, shape, DType::BFloat16);
  };
  const Tensor x = graph.input("x", {1, seq, kHidden}, DType::BFloat16);
  const Tensor lengths = graph.input("lengths", {1}, DType::Int32);
  const Tensor normed = graph.rms_norm(x, weight("norm_1", {kHidden}));
  const Tensor q =
      graph.rotary(graph.split_heads(graph.linear(normed, weight("w_q", {512, kHidden})), 8));
  const Tensor k =
      graph.rotary(graph.split_heads(graph.linear(normed, weight("w_k", {128, kHidden})), 2));
  const Tensor v = graph.split_heads(graph.linear(normed, weight("w_v", {128, kHidden})), 2);
  const AttentionResult attention =
      graph.attention_with_lse(q, k, v, {.mask = causal(), .kv_lengths = lengths});
  const Tensor h = graph.add(
      x, graph.linear(graph.merge_heads(attention.output), weight("w_o", {kHidden, 512})));
  const Tensor normed_2 = graph.rms_norm(h, weight("norm_2", {kHidden}));
  const Tensor gate = graph.silu(graph.linear(normed_2, weight("w_gate", {1376, kHidden})));
  const Tensor up = graph.linear(normed_2, weight("w_up", {1376, kHidden}));
  const Tensor down = graph.linear(graph.multiply(gate, up), weight("w_down", {kHidden, 1376}));
  graph.output("y", graph.add(h, down));
  graph.output("keys", k);
  graph.output("values", v);
  graph.output("lse", attention.lse);
  return graph;
}

// T5 decoder layer's attentions: relative position bias as a score, then cross attention, no scale.
inline Graph t5_decoder_layer() {
  Graph graph("t5_decoder_layer");
  constexpr std::int64_t kHidden = 64;
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return graph.weight(name, shape, DType::Float32);
  };
  const Tensor x = graph.input("x", {2, 24, kHidden}, DType::Float32);
  const Tensor encoded = graph.input("encoded", {2, 40, kHidden}, DType::Float32);
  const Tensor keep = graph.input("keep", {2, 40}, DType::Bool);
  const Tensor bias = weight("block.0.relative_attention_bias.weight", {32, 4});
  const Capture biases = graph.capture(bias);
  const auto project = [&](const Tensor& from, const std::string& name) {
    return graph.split_heads(graph.linear(from, weight(name, {kHidden, kHidden})), 4);
  };
  const Tensor normed = graph.rms_norm(x, weight("norm_1", {kHidden}));
  const Expr distance = min(max(query_position() - key_position(), 0), 31);
  const Tensor self = graph.attention(
      project(normed, "self_q"), project(normed, "self_k"), project(normed, "self_v"),
      {.mask = causal(), .score = score() + biases(distance, head_index()), .scale = 1});
  const Tensor h =
      graph.add(x, graph.linear(graph.merge_heads(self), weight("self_o", {kHidden, kHidden})));
  const Tensor normed_2 = graph.rms_norm(h, weight("norm_2", {kHidden}));
  const Tensor cross = graph.attention(project(normed_2, "cross_q"), project(encoded, "cross_k"),
                                       project(encoded, "cross_v"),
                                       {.mask = key_padding(graph.capture(keep)), .scale = 1});
  graph.output("y", graph.add(h, graph.linear(graph.merge_heads(cross),
                                              weight("cross_o", {kHidden, kHidden}))));
  return graph;
}

}  // namespace stof::graph
