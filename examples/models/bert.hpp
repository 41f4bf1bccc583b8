#pragma once

#include <cstdint>

#include <stof/stof.hpp>

namespace models {

// The fields of Hugging Face's BertConfig that the encoder needs.
struct BertConfig {
  std::int64_t vocab_size = 30522;
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  stof::Activation hidden_act = stof::Activation::Gelu;
  double layer_norm_eps = 1e-12;
};

inline constexpr BertConfig kBertBase;
inline constexpr BertConfig kBertLarge = {.hidden_size = 1024,
                                          .num_hidden_layers = 24,
                                          .num_attention_heads = 16,
                                          .intermediate_size = 4096};
// sentence-transformers/all-MiniLM-L6-v2
inline constexpr BertConfig kMiniLmL6 = {
    .hidden_size = 384, .num_hidden_layers = 6, .intermediate_size = 1536};

struct BertOptions {
  stof::Dim batch = 1;
  stof::Dim sequence = 128;  // at most max_position_embeddings
  stof::DType dtype = stof::DType::Float16;
  stof::Mask mask = {};      // of every attention
  bool key_padding = false;  // adds the input "key_padding"
  bool key_lengths = false;  // adds the input "key_lengths"
  bool sentence = false;     // one vector a text instead of one a token; adds the input "shares"
};

// BertModel without its pooler (Devlin et al., "BERT", 2019): token type 0, weights by their names
// in Hugging Face. Inputs "ids" int32 [batch, sequence] and, where it is asked for, "key_padding"
// uint8 [batch, sequence], 0 for keys that nobody sees; "key_lengths" int32 [batch], from which key
// on nobody sees any; "shares" [batch, 1, sequence], how much of each token is in the sentence.
// Output "last_hidden_state" [batch, sequence, hidden_size], or "sentence" [batch, 1, hidden_size],
// of length 1 (Reimers and Gurevych, "Sentence-BERT", 2019).
stof::Graph bert(const BertConfig& config, const BertOptions& options);

}  // namespace models
