#include "encoder.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace embeddings {

namespace {

constexpr std::int64_t kMaxBatch = 32;
constexpr std::int64_t kMaxTokens = 256;  // what the model was trained for
constexpr std::int64_t kTokenStep =
    16;  // texts are padded to a multiple, so that few lanes serve all

// The integers of config.json, which is one flat object.
class Config {
 public:
  explicit Config(std::filesystem::path path) : path_(std::move(path)) {
    std::ifstream file(path_);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    if (!file) {
      throw std::runtime_error("encoder: cannot read " + path_.string());
    }
  }

  std::int64_t integer(const std::string& key) const {
    const std::string quoted = '"' + key + '"';
    const std::size_t at = text_.find(quoted);
    const std::size_t colon = at == std::string::npos ? at : text_.find(':', at + quoted.size());
    const std::size_t digit =
        colon == std::string::npos ? colon : text_.find_first_not_of(" \t\r\n", colon + 1);
    if (digit == std::string::npos || text_[digit] < '1' || text_[digit] > '9') {
      throw std::runtime_error("encoder: " + path_.string() + " has no positive integer " + quoted);
    }
    return std::stoll(text_.substr(digit, 18));
  }

 private:
  std::filesystem::path path_;
  std::string text_;
};

models::BertConfig read_config(const std::filesystem::path& path) {
  const Config config(path);
  return {.vocab_size = config.integer("vocab_size"),
          .hidden_size = config.integer("hidden_size"),
          .num_hidden_layers = config.integer("num_hidden_layers"),
          .num_attention_heads = config.integer("num_attention_heads"),
          .intermediate_size = config.integer("intermediate_size"),
          .max_position_embeddings = config.integer("max_position_embeddings"),
          .type_vocab_size = config.integer("type_vocab_size")};
}

std::int64_t max_tokens(const models::BertConfig& config) {
  return std::min(kMaxTokens, config.max_position_embeddings);
}

stof::Graph sentence_graph(const models::BertConfig& config, stof::Backend backend) {
  const bool is_gpu = backend == stof::Backend::Gpu;
  return models::bert(config, {.batch = stof::Dim::symbol("batch", 1, kMaxBatch),
                               .sequence = stof::Dim::symbol("tokens", 1, max_tokens(config)),
                               .dtype = is_gpu ? stof::DType::Float16 : stof::DType::Float32,
                               .key_lengths = true,
                               .sentence = true});
}

template <typename T>
void upload(stof::Buffer& buffer, std::vector<T>& values, stof::DType dtype) {
  buffer.upload(stof::TensorView{.data = values.data(), .dtype = dtype, .shape = buffer.shape()});
}

}  // namespace

Encoder::Encoder(const std::filesystem::path& folder)
    : config_(read_config(folder / "config.json")),
      tokenizer_(folder / "vocab.txt"),
      engine_({.backend = stof::Backend::Auto}),
      plan_(engine_.build(sentence_graph(config_, engine_.backend()))),
      weights_(engine_.load_weights(plan_, folder / "model.safetensors")) {}

std::vector<float> Encoder::embed(std::span<const std::string> texts) {
  std::vector<Tokens> tokens;
  tokens.reserve(texts.size());
  for (const std::string& text : texts) {
    tokens.push_back(tokenizer_.encode(text, static_cast<std::size_t>(max_tokens(config_))));
  }
  // Texts of like length share a batch, so that little is padded.
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tokens[a].size() < tokens[b].size();
  });

  std::vector<float> rows(texts.size() * static_cast<std::size_t>(width()));
  for (std::size_t begin = 0; begin < order.size(); begin += kMaxBatch) {
    const std::size_t end = std::min(order.size(), begin + kMaxBatch);
    std::vector<const Tokens*> batch;
    for (std::size_t i = begin; i < end; ++i) {
      batch.push_back(&tokens[order[i]]);
    }
    const std::vector<float> sentences = embed_batch(batch);
    for (std::size_t i = begin; i < end; ++i) {
      std::copy_n(sentences.begin() + static_cast<std::ptrdiff_t>(i - begin) * width(), width(),
                  rows.begin() + static_cast<std::ptrdiff_t>(order[i]) * width());
    }
  }
  return rows;
}

Encoder::Lane& Encoder::lane(std::int64_t texts, std::int64_t tokens) {
  const auto found = lanes_.find({texts, tokens});
  if (found != lanes_.end()) {
    return found->second;
  }
  const stof::DimValues dims = {{"batch", texts}, {"tokens", tokens}};
  stof::Buffer ids = engine_.allocate(plan_.input("ids"), dims);
  stof::Buffer lengths = engine_.allocate(plan_.input("key_lengths"), dims);
  stof::Buffer shares = engine_.allocate(plan_.input("shares"), dims);
  stof::Buffer sentence = engine_.allocate(plan_.output("sentence"), dims);
  stof::Execution run = plan_.bind(
      weights_,
      {{"ids", ids}, {"key_lengths", lengths}, {"shares", shares}, {"sentence", sentence}},
      {.dims = dims});
  return lanes_
      .emplace(std::pair(texts, tokens), Lane{std::move(ids), std::move(lengths), std::move(shares),
                                              std::move(sentence), std::move(run)})
      .first->second;
}

// The last text of the batch is the longest.
std::vector<float> Encoder::embed_batch(std::span<const Tokens* const> batch) {
  const auto longest = static_cast<std::int64_t>(batch.back()->size());
  const std::int64_t padded =
      std::min((longest + kTokenStep - 1) / kTokenStep * kTokenStep, max_tokens(config_));
  const auto columns = static_cast<std::size_t>(padded);
  std::vector<std::int32_t> ids(batch.size() * columns), lengths(batch.size());
  std::vector<float> shares(batch.size() * columns);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Tokens& tokens = *batch[i];
    std::copy(tokens.begin(), tokens.end(), &ids[i * columns]);
    std::fill_n(&shares[i * columns], tokens.size(), 1.0F / static_cast<float>(tokens.size()));
    lengths[i] = static_cast<std::int32_t>(tokens.size());
  }
  Lane& lane = this->lane(static_cast<std::int64_t>(batch.size()), padded);
  upload(lane.ids, ids, stof::DType::Int32);
  upload(lane.lengths, lengths, stof::DType::Int32);
  lane.shares.upload(shares);
  lane.run.launch();
  return lane.sentence.download_floats();
}

}  // namespace embeddings
