#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <stof/stof.hpp>

namespace models {

// Models in full size by name: BERT without its pooler, GPT-2 and LLaMA without their heads, the
// encoder of T5, ViT without its pooler.
inline constexpr std::array<std::string_view, 6> kNames = {"bert-base", "bert-large", "gpt2",
                                                           "llama-7b",  "t5-base",    "vit-base"};

struct Size {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;  // of ViT: the patches of a square image and its class token
  std::int64_t layers = 0;      // 0: as many as the model has
};

// The graph of one of kNames, for sequences of any length: the tables of positions are as long as
// the sequence where the model has shorter ones. Throws stof::GraphError for another name, fewer
// than one sequence or token, more layers than the model has or fewer than none, and for a ViT
// whose patches make no square.
stof::Graph by_name(std::string_view name, const Size& size, stof::DType dtype,
                    const stof::Mask& mask = {});

}  // namespace models
