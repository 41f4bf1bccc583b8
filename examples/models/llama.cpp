#include "llama.hpp"

#include <string>
#include <utility>

namespace models {

namespace {

using stof::Tensor;

class LlamaBuilder {
 public:
  LlamaBuilder(const LlamaConfig& config, const LlamaOptions& options)
      : config_(config), options_(options), mask_(stof::causal() && options.mask) {}

  stof::Graph build() {
    const Tensor ids = graph_.input("ids", {options_.batch, options_.sequence}, stof::DType::Int32);
    Tensor x =
        graph_.embedding(graph_.weight("embed_tokens.weight",
                                       {config_.vocab_size, config_.hidden_size}, options_.dtype),
                         ids);
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      x = layer("layers." + std::to_string(i) + ".", x);
    }
    graph_.output("last_hidden_state", norm("norm.weight", x));
    return std::move(graph_);
  }

 private:
  Tensor layer(const std::string& name, const Tensor& x) {
    const Tensor y =
        graph_.add(attention(name + "self_attn.", norm(name + "input_layernorm.weight", x)), x);
    return graph_.add(
        feed_forward(name + "mlp.", norm(name + "post_attention_layernorm.weight", y)), y);
  }

  Tensor attention(const std::string& name, const Tensor& x) {
    const stof::RotaryOptions rotary{.theta = config_.rope_theta};
    const Tensor q =
        graph_.rotary(heads(name + "q_proj.weight", x, config_.num_attention_heads), rotary);
    const Tensor k =
        graph_.rotary(heads(name + "k_proj.weight", x, config_.num_key_value_heads), rotary);
    const Tensor v = heads(name + "v_proj.weight", x, config_.num_key_value_heads);
    const Tensor context = graph_.attention(q, k, v, {.mask = mask_});
    return linear(name + "o_proj.weight", graph_.merge_heads(context),
                  config_.num_attention_heads * config_.head_dim, config_.hidden_size);
  }

  // SwiGLU (Shazeer, "GLU variants improve Transformer", 2020).
  Tensor feed_forward(const std::string& name, const Tensor& x) {
    const std::int64_t inner = config_.intermediate_size;
    const Tensor gate =
        graph_.silu(linear(name + "gate_proj.weight", x, config_.hidden_size, inner));
    const Tensor up = linear(name + "up_proj.weight", x, config_.hidden_size, inner);
    return linear(name + "down_proj.weight", graph_.multiply(gate, up), inner, config_.hidden_size);
  }

  // [batch, count, sequence, head_dim]
  Tensor heads(const std::string& name, const Tensor& x, std::int64_t count) {
    return graph_.split_heads(linear(name, x, config_.hidden_size, count * config_.head_dim),
                              count);
  }

  Tensor linear(const std::string& name, const Tensor& x, std::int64_t in, std::int64_t out) {
    return graph_.linear(x, graph_.weight(name, {out, in}, options_.dtype));
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return graph_.rms_norm(x, graph_.weight(name, {config_.hidden_size}, options_.dtype),
                           config_.rms_norm_eps);
  }

  const LlamaConfig& config_;
  const LlamaOptions& options_;
  stof::Mask mask_;
  stof::Graph graph_{"llama"};
};

}  // namespace

stof::Graph llama(const LlamaConfig& config, const LlamaOptions& options) {
  return LlamaBuilder(config, options).build();
}

}  // namespace models
