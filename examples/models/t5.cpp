#include "t5.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace models {

namespace {

using stof::Tensor;

// The bucket of each relative position k - q from -max_distance to max_distance: one for each short
// distance, then wider and wider ones. Positions farther away share the bucket at the end. The
// logarithms are floats, as in the models that were trained: at a power of two the last bit decides
// the bucket.
std::vector<std::int64_t> relative_buckets(const T5Config& config, bool is_bidirectional) {
  const std::int64_t furthest = config.relative_attention_max_distance;
  const std::int64_t count = config.relative_attention_num_buckets / (is_bidirectional ? 2 : 1);
  const std::int64_t exact = count / 2;
  const float range = std::log(static_cast<float>(furthest) / static_cast<float>(exact));
  std::vector<std::int64_t> buckets;
  for (std::int64_t relative = -furthest; relative <= furthest; ++relative) {
    const std::int64_t distance =
        is_bidirectional ? std::abs(relative) : -std::min<std::int64_t>(relative, 0);
    std::int64_t bucket = distance;
    if (distance >= exact) {
      const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
      const float steps = std::log(ratio) / range * static_cast<float>(count - exact);
      bucket = std::min(exact + static_cast<std::int64_t>(steps), count - 1);
    }
    buckets.push_back(is_bidirectional && relative > 0 ? bucket + count : bucket);
  }
  return buckets;
}

class T5Builder {
 public:
  T5Builder(const T5Config& config, const T5Options& options)
      : config_(config), options_(options) {}

  stof::Graph build_encoder() {
    graph_.output("last_hidden_state", encoder());
    return std::move(graph_);
  }

  stof::Graph build() {
    graph_.output("last_hidden_state", decoder(encoder()));
    return std::move(graph_);
  }

 private:
  Tensor encoder() {
    embeddings_ = weight("shared.weight", {config_.vocab_size, config_.d_model});
    const Tensor ids = graph_.input("ids", {options_.batch, options_.sequence}, stof::DType::Int32);
    if (options_.key_padding) {
      const Tensor keep =
          graph_.input("key_padding", {options_.batch, options_.sequence}, stof::DType::UInt8);
      padding_ = stof::key_padding(graph_.capture(keep));
    }
    const stof::AttentionOptions attention{
        .mask = options_.mask && padding_,
        .score = relative_score("encoder", /*is_bidirectional=*/true),
        .scale = 1.0};
    Tensor x = graph_.embedding(embeddings_, ids);
    for (std::int64_t i = 0; i < config_.num_layers; ++i) {
      const std::string block = "encoder.block." + std::to_string(i) + ".layer.";
      x = self_attention(block + "0.", x, attention);
      x = feed_forward(block + "1.", x);
    }
    return norm("encoder.final_layer_norm.weight", x);
  }

  Tensor decoder(const Tensor& encoded) {
    const Tensor ids = graph_.input("decoder_ids", {options_.batch, options_.decoder_sequence},
                                    stof::DType::Int32);
    const stof::AttentionOptions attention{
        .mask = stof::causal() && options_.decoder_mask,
        .score = relative_score("decoder", /*is_bidirectional=*/false),
        .scale = 1.0};
    Tensor x = graph_.embedding(embeddings_, ids);
    for (std::int64_t i = 0; i < config_.num_decoder_layers; ++i) {
      const std::string block = "decoder.block." + std::to_string(i) + ".layer.";
      x = self_attention(block + "0.", x, attention);
      x = cross_attention(block + "1.", x, encoded);
      x = feed_forward(block + "2.", x);
    }
    return norm("decoder.final_layer_norm.weight", x);
  }

  // The score plus the bias of the bucket and head; the first block's table serves all blocks.
  stof::Score relative_score(const std::string& stack, bool is_bidirectional) {
    const Tensor biases =
        weight(stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
               {config_.relative_attention_num_buckets, config_.num_heads});
    const stof::Capture bias = graph_.capture(biases, stack + "_bias");
    const stof::Table bucket(stack + "_bucket", relative_buckets(config_, is_bidirectional));
    const stof::Expr relative = stof::key_position() - stof::query_position();
    return stof::score() +
           bias(bucket[relative + config_.relative_attention_max_distance], stof::head_index());
  }

  Tensor self_attention(const std::string& layer, const Tensor& x,
                        const stof::AttentionOptions& options) {
    const Tensor y = norm(layer + "layer_norm.weight", x);
    return graph_.add(x, attention(layer + "SelfAttention.", y, y, options));
  }

  Tensor cross_attention(const std::string& layer, const Tensor& x, const Tensor& encoded) {
    const Tensor y = norm(layer + "layer_norm.weight", x);
    return graph_.add(
        x, attention(layer + "EncDecAttention.", y, encoded, {.mask = padding_, .scale = 1.0}));
  }

  Tensor attention(const std::string& name, const Tensor& queries, const Tensor& keys,
                   const stof::AttentionOptions& options) {
    const std::int64_t inner = config_.num_heads * config_.d_kv;
    const Tensor context =
        graph_.attention(heads(name + "q.weight", queries), heads(name + "k.weight", keys),
                         heads(name + "v.weight", keys), options);
    return linear(name + "o.weight", graph_.merge_heads(context), inner, config_.d_model);
  }

  Tensor feed_forward(const std::string& layer, const Tensor& x) {
    const std::string name = layer + "DenseReluDense.";
    const Tensor y = norm(layer + "layer_norm.weight", x);
    const Tensor inner =
        config_.is_gated_act
            ? graph_.multiply(widen(name + "wi_0.weight", y, config_.dense_act_fn),
                              linear(name + "wi_1.weight", y, config_.d_model, config_.d_ff))
            : widen(name + "wi.weight", y, config_.dense_act_fn);
    return graph_.add(x, linear(name + "wo.weight", inner, config_.d_ff, config_.d_model));
  }

  Tensor widen(const std::string& name, const Tensor& x, stof::Activation activation) {
    return graph_.activation(linear(name, x, config_.d_model, config_.d_ff), activation);
  }

  // [batch, heads, sequence, d_kv]
  Tensor heads(const std::string& name, const Tensor& x) {
    return graph_.split_heads(linear(name, x, config_.d_model, config_.num_heads * config_.d_kv),
                              config_.num_heads);
  }

  Tensor linear(const std::string& name, const Tensor& x, std::int64_t in, std::int64_t out) {
    return graph_.linear(x, weight(name, {out, in}));
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return graph_.rms_norm(x, weight(name, {config_.d_model}), config_.layer_norm_epsilon);
  }

  Tensor weight(const std::string& name, const stof::Shape& shape) {
    return graph_.weight(name, shape, options_.dtype);
  }

  const T5Config& config_;
  const T5Options& options_;
  stof::Mask padding_;
  Tensor embeddings_;
  stof::Graph graph_{"t5"};
};

}  // namespace

stof::Graph t5_encoder(const T5Config& config, const T5Options& options) {
  return T5Builder(config, options).build_encoder();
}

stof::Graph t5(const T5Config& config, const T5Options& options) {
  return T5Builder(config, options).build();
}

}  // namespace models
