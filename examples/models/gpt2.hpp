#pragma once

#include <cstdint>

#include <stof/stof.hpp>

namespace models {

// The fields of Hugging Face's GPT2Config that the decoder needs.
struct Gpt2Config {
  std::int64_t vocab_size = 50257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_inner = 0;                                           // 0: four times n_embd
  stof::Activation activation_function = stof::Activation::GeluTanh;  // "gelu_new"
  double layer_norm_epsilon = 1e-5;
};

inline constexpr Gpt2Config kGpt2;
inline constexpr Gpt2Config kGpt2Medium = {.n_embd = 1024, .n_layer = 24, .n_head = 16};

struct Gpt2Options {
  stof::Dim batch = 1;
  stof::Dim sequence = 128;  // at most n_positions
  stof::DType dtype = stof::DType::Float16;
  stof::Mask mask = {};  // of every attention, besides causality
};

// GPT2Model (Radford et al., "Language models are unsupervised multitask learners", 2019), weights
// by their names in Hugging Face. Input "ids" int32 [batch, sequence]; output "last_hidden_state"
// [batch, sequence, n_embd].
stof::Graph gpt2(const Gpt2Config& config, const Gpt2Options& options);

}  // namespace models
