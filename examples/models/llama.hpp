#pragma once

#include <cstdint>

#include <stof/stof.hpp>

namespace models {

// The fields of Hugging Face's LlamaConfig that the decoder needs.
struct LlamaConfig {
  std::int64_t vocab_size = 32000;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 11008;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 32;
  std::int64_t num_key_value_heads = 32;
  std::int64_t head_dim = 128;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
};

inline constexpr LlamaConfig kLlama7B;
inline constexpr LlamaConfig kLlama3Of8B = {.vocab_size = 128256,
                                            .intermediate_size = 14336,
                                            .num_key_value_heads = 8,
                                            .rms_norm_eps = 1e-5,
                                            .rope_theta = 500000.0};

struct LlamaOptions {
  stof::Dim batch = 1;
  stof::Dim sequence = 128;
  stof::DType dtype = stof::DType::Float16;
  stof::Mask mask = {};  // of every attention, besides causality
};

// LlamaModel (Touvron et al., "LLaMA", 2023), weights by their names in Hugging Face. Input "ids"
// int32 [batch, sequence]; output "last_hidden_state" [batch, sequence, hidden_size].
stof::Graph llama(const LlamaConfig& config, const LlamaOptions& options);

}  // namespace models
