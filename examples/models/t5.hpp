#pragma once

#include <cstdint>

#include <stof/stof.hpp>

namespace models {

// The fields of Hugging Face's T5Config that encoder and decoder need.
struct T5Config {
  std::int64_t vocab_size = 32128;
  std::int64_t d_model = 768;
  std::int64_t d_kv = 64;
  std::int64_t d_ff = 3072;
  std::int64_t num_layers = 12;
  std::int64_t num_decoder_layers = 12;
  std::int64_t num_heads = 12;
  std::int64_t relative_attention_num_buckets = 32;
  std::int64_t relative_attention_max_distance = 128;
  double layer_norm_epsilon = 1e-6;
  stof::Activation dense_act_fn = stof::Activation::Relu;
  bool is_gated_act = false;
};

inline constexpr T5Config kT5Base;
inline constexpr T5Config kFlanT5Base = {  // also T5 1.1
    .d_ff = 2048,
    .dense_act_fn = stof::Activation::GeluTanh,
    .is_gated_act = true};

struct T5Options {
  stof::Dim batch = 1;
  stof::Dim sequence = 128;          // of the encoder
  stof::Dim decoder_sequence = 128;  // of the decoder
  stof::DType dtype = stof::DType::Float16;
  stof::Mask mask = {};          // of the encoder's attentions
  stof::Mask decoder_mask = {};  // of the decoder's attentions to itself, besides causality
  bool key_padding = false;      // adds the input "key_padding"
};

// T5EncoderModel (Raffel et al., "Exploring the limits of transfer learning", 2020), weights by
// their names in Hugging Face. Inputs "ids" int32 [batch, sequence] and, where it is asked for,
// "key_padding" uint8 [batch, sequence], 0 for encoder keys that nobody sees. Output
// "last_hidden_state" [batch, sequence, d_model].
stof::Graph t5_encoder(const T5Config& config, const T5Options& options);

// T5Model: also the input "decoder_ids" int32 [batch, decoder_sequence]. Output "last_hidden_state"
// [batch, decoder_sequence, d_model].
stof::Graph t5(const T5Config& config, const T5Options& options);

}  // namespace models
