#pragma once

#include <cstdint>

#include <stof/stof.hpp>

namespace models {

// The fields of Hugging Face's ViTConfig that the encoder needs.
struct VitConfig {
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  stof::Activation hidden_act = stof::Activation::Gelu;
  double layer_norm_eps = 1e-12;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 16;
  std::int64_t num_channels = 3;

  // Tokens of an image: its patches, and the class token before them.
  constexpr std::int64_t tokens() const {
    return (image_size / patch_size) * (image_size / patch_size) + 1;
  }
};

inline constexpr VitConfig kVitBase;
inline constexpr VitConfig kVitLarge = {.hidden_size = 1024,
                                        .num_hidden_layers = 24,
                                        .num_attention_heads = 16,
                                        .intermediate_size = 4096};

struct VitOptions {
  stof::Dim batch = 1;
  stof::DType dtype = stof::DType::Float16;
  stof::Mask mask = {};  // of every attention; token 0 is the class token
};

// ViTModel without its pooler (Dosovitskiy et al., "An image is worth 16x16 words", 2021), weights
// by their names in Hugging Face. Input "pixels" [batch, num_channels, image_size, image_size];
// output "last_hidden_state" [batch, tokens, hidden_size].
stof::Graph vit(const VitConfig& config, const VitOptions& options);

}  // namespace models
