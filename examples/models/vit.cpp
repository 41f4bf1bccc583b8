#include "vit.hpp"

#include <string>
#include <utility>

namespace models {

namespace {

using stof::Tensor;

class VitBuilder {
 public:
  VitBuilder(const VitConfig& config, const VitOptions& options)
      : config_(config), options_(options) {}

  stof::Graph build() {
    Tensor x = embeddings();
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      x = layer("layers." + std::to_string(i) + ".", x);
    }
    graph_.output("last_hidden_state", norm("layernorm.", x));
    return std::move(graph_);
  }

 private:
  Tensor embeddings() {
    const Tensor pixels = graph_.input(
        "pixels", {options_.batch, config_.num_channels, config_.image_size, config_.image_size},
        options_.dtype);
    const Tensor rows = graph_.patches(pixels, config_.patch_size);
    const Tensor projected = project(rows);  // [batch, patches, hidden]
    const Tensor class_token =
        graph_.broadcast(weight("embeddings.cls_token", {1, 1, config_.hidden_size}),
                         {options_.batch, 1, config_.hidden_size});
    const Tensor positions =
        weight("embeddings.position_embeddings", {1, config_.tokens(), config_.hidden_size});
    return graph_.add(graph_.concat({class_token, projected}, 1), positions);
  }

  // A convolution whose stride is its size is a linear layer on patches.
  Tensor project(const Tensor& patches) {
    const std::string name = "embeddings.patch_embeddings.projection.";
    const std::int64_t size = config_.patch_size;
    const Tensor kernel =
        weight(name + "weight", {config_.hidden_size, config_.num_channels, size, size});
    const Tensor matrix = graph_.reshape(kernel, {config_.hidden_size, -1});
    return graph_.linear(patches, matrix, weight(name + "bias", {config_.hidden_size}));
  }

  Tensor layer(const std::string& name, const Tensor& x) {
    const Tensor y =
        graph_.add(attention(name + "attention.", norm(name + "layernorm_before.", x)), x);
    return graph_.add(feed_forward(name + "mlp.", norm(name + "layernorm_after.", y)), y);
  }

  Tensor attention(const std::string& name, const Tensor& x) {
    const Tensor context = graph_.attention(heads(name + "q_proj.", x), heads(name + "k_proj.", x),
                                            heads(name + "v_proj.", x), {.mask = options_.mask});
    return linear(name + "o_proj.", graph_.merge_heads(context), config_.hidden_size,
                  config_.hidden_size);
  }

  Tensor feed_forward(const std::string& name, const Tensor& x) {
    const Tensor inner =
        graph_.activation(linear(name + "fc1.", x, config_.hidden_size, config_.intermediate_size),
                          config_.hidden_act);
    return linear(name + "fc2.", inner, config_.intermediate_size, config_.hidden_size);
  }

  // [batch, heads, tokens, head_dim]
  Tensor heads(const std::string& name, const Tensor& x) {
    return graph_.split_heads(linear(name, x, config_.hidden_size, config_.hidden_size),
                              config_.num_attention_heads);
  }

  Tensor linear(const std::string& name, const Tensor& x, std::int64_t in, std::int64_t out) {
    return graph_.linear(x, weight(name + "weight", {out, in}), weight(name + "bias", {out}));
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return graph_.layer_norm(x, weight(name + "weight", {config_.hidden_size}),
                             weight(name + "bias", {config_.hidden_size}), config_.layer_norm_eps);
  }

  Tensor weight(const std::string& name, const stof::Shape& shape) {
    return graph_.weight(name, shape, options_.dtype);
  }

  const VitConfig& config_;
  const VitOptions& options_;
  stof::Graph graph_{"vit"};
};

}  // namespace

stof::Graph vit(const VitConfig& config, const VitOptions& options) {
  return VitBuilder(config, options).build();
}

}  // namespace models
