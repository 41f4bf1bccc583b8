#include "gpt2.hpp"

#include <string>
#include <utility>

namespace models {

namespace {

using stof::Tensor;

class Gpt2Builder {
 public:
  Gpt2Builder(const Gpt2Config& config, const Gpt2Options& options)
      : config_(config), options_(options), mask_(stof::causal() && options.mask) {}

  stof::Graph build() {
    Tensor x = embeddings();
    for (std::int64_t i = 0; i < config_.n_layer; ++i) {
      x = block("h." + std::to_string(i) + ".", x);
    }
    graph_.output("last_hidden_state", norm("ln_f.", x));
    return std::move(graph_);
  }

 private:
  Tensor embeddings() {
    const Tensor ids = graph_.input("ids", {options_.batch, options_.sequence}, stof::DType::Int32);
    const Tensor tokens = graph_.embedding(
        graph_.weight("wte.weight", {config_.vocab_size, config_.n_embd}, options_.dtype), ids);
    const Tensor positions = graph_.slice(
        graph_.weight("wpe.weight", {config_.n_positions, config_.n_embd}, options_.dtype), 0, 0,
        options_.sequence);
    return graph_.add(tokens, positions);
  }

  Tensor block(const std::string& name, const Tensor& x) {
    const Tensor y = graph_.add(attention(name + "attn.", norm(name + "ln_1.", x)), x);
    return graph_.add(feed_forward(name + "mlp.", norm(name + "ln_2.", y)), y);
  }

  Tensor attention(const std::string& name, const Tensor& x) {
    const Tensor qkv = linear(name + "c_attn.", x, config_.n_embd, 3 * config_.n_embd);
    const auto heads = graph_.split_qkv(qkv, {.heads = config_.n_head});
    const Tensor context = graph_.attention(heads.q, heads.k, heads.v, {.mask = mask_});
    return linear(name + "c_proj.", graph_.merge_heads(context), config_.n_embd, config_.n_embd);
  }

  Tensor feed_forward(const std::string& name, const Tensor& x) {
    const std::int64_t n_inner = config_.n_inner == 0 ? 4 * config_.n_embd : config_.n_inner;
    const Tensor inner = graph_.activation(linear(name + "c_fc.", x, config_.n_embd, n_inner),
                                           config_.activation_function);
    return linear(name + "c_proj.", inner, n_inner, config_.n_embd);
  }

  // Hugging Face's Conv1D, whose weight is [in, out].
  Tensor linear(const std::string& name, const Tensor& x, std::int64_t in, std::int64_t out) {
    return graph_.linear(x,
                         graph_.weight(name + "weight", {in, out}, options_.dtype,
                                       {.layout = stof::WeightLayout::InOut}),
                         graph_.weight(name + "bias", {out}, options_.dtype));
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return graph_.layer_norm(x, graph_.weight(name + "weight", {config_.n_embd}, options_.dtype),
                             graph_.weight(name + "bias", {config_.n_embd}, options_.dtype),
                             config_.layer_norm_epsilon);
  }

  const Gpt2Config& config_;
  const Gpt2Options& options_;
  stof::Mask mask_;
  stof::Graph graph_{"gpt2"};
};

}  // namespace

stof::Graph gpt2(const Gpt2Config& config, const Gpt2Options& options) {
  return Gpt2Builder(config, options).build();
}

}  // namespace models
