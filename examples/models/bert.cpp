#include "bert.hpp"

#include <optional>
#include <string>
#include <utility>

namespace models {

namespace {

using stof::Tensor;

class BertBuilder {
 public:
  BertBuilder(const BertConfig& config, const BertOptions& options)
      : config_(config), options_(options), mask_(options.mask) {}

  stof::Graph build() {
    Tensor x = embeddings();
    if (options_.key_padding) {
      const Tensor keep =
          graph_.input("key_padding", {options_.batch, options_.sequence}, stof::DType::UInt8);
      mask_ = mask_ && stof::key_padding(graph_.capture(keep));
    }
    if (options_.key_lengths) {
      lengths_ =
          graph_.mask_input("key_lengths", {options_.batch}, {.form = stof::MaskForm::KeyLengths});
    }
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      x = layer("encoder.layer." + std::to_string(i) + ".", x);
    }
    if (options_.sentence) {
      graph_.output("sentence", sentence(x));
    } else {
      graph_.output("last_hidden_state", x);
    }
    return std::move(graph_);
  }

 private:
  Tensor embeddings() {
    const Tensor ids = graph_.input("ids", {options_.batch, options_.sequence}, stof::DType::Int32);
    const Tensor words = graph_.embedding(
        table("embeddings.word_embeddings.weight", config_.vocab_size), ids);  // [b, s, hidden]
    const Tensor positions = graph_.slice(
        table("embeddings.position_embeddings.weight", config_.max_position_embeddings), 0, 0,
        options_.sequence);  // [s, hidden]
    const Tensor type =
        graph_.slice(table("embeddings.token_type_embeddings.weight", config_.type_vocab_size), 0,
                     0, 1);  // [1, hidden]: every token is of type 0
    return norm("embeddings.LayerNorm.", graph_.add(graph_.add(words, type), positions));
  }

  Tensor layer(const std::string& name, const Tensor& x) {
    const std::string self = name + "attention.self.";
    const Tensor context =
        graph_.attention(heads(self + "query.", x), heads(self + "key.", x),
                         heads(self + "value.", x), {.mask = mask_, .mask_input = lengths_});
    const Tensor attended = linear(name + "attention.output.dense.", graph_.merge_heads(context),
                                   config_.hidden_size, config_.hidden_size);
    const Tensor y = norm(name + "attention.output.LayerNorm.", graph_.add(attended, x));
    const Tensor inner = graph_.activation(
        linear(name + "intermediate.dense.", y, config_.hidden_size, config_.intermediate_size),
        config_.hidden_act);
    const Tensor outer =
        linear(name + "output.dense.", inner, config_.intermediate_size, config_.hidden_size);
    return norm(name + "output.LayerNorm.", graph_.add(outer, y));
  }

  // The mean of the tokens, at length 1: [batch, 1, hidden]
  Tensor sentence(const Tensor& x) {
    const Tensor shares =
        graph_.input("shares", {options_.batch, 1, options_.sequence}, options_.dtype);
    const Tensor mean = graph_.matmul(shares, x);
    const Tensor square = graph_.reduce_sum(graph_.multiply(mean, mean), 2, true);
    return graph_.divide(mean, graph_.sqrt(square));
  }

  // [batch, heads, sequence, head_dim]
  Tensor heads(const std::string& name, const Tensor& x) {
    return graph_.split_heads(linear(name, x, config_.hidden_size, config_.hidden_size),
                              config_.num_attention_heads);
  }

  Tensor linear(const std::string& name, const Tensor& x, std::int64_t in, std::int64_t out) {
    return graph_.linear(x, graph_.weight(name + "weight", {out, in}, options_.dtype),
                         graph_.weight(name + "bias", {out}, options_.dtype));
  }

  Tensor norm(const std::string& name, const Tensor& x) {
    return graph_.layer_norm(x,
                             graph_.weight(name + "weight", {config_.hidden_size}, options_.dtype),
                             graph_.weight(name + "bias", {config_.hidden_size}, options_.dtype),
                             config_.layer_norm_eps);
  }

  Tensor table(const std::string& name, std::int64_t rows) {
    return graph_.weight(name, {rows, config_.hidden_size}, options_.dtype);
  }

  const BertConfig& config_;
  const BertOptions& options_;
  stof::Mask mask_;
  std::optional<stof::MaskInput> lengths_;
  stof::Graph graph_{"bert"};
};

}  // namespace

stof::Graph bert(const BertConfig& config, const BertOptions& options) {
  return BertBuilder(config, options).build();
}

}  // namespace models
