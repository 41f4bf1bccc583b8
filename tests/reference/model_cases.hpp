#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "models/t5.hpp"
#include "models/vit.hpp"
#include "testing.hpp"

// Tiny models of Hugging Face with their inputs and outputs, which were computed in float64 and
// stored in float32: every case of every file, through the builders of examples/models.
namespace stof::testing {

using io::SafetensorsFile;

inline constexpr std::int64_t kBatch = 2;
inline constexpr std::int64_t kSequence = 48;
inline constexpr std::int64_t kDecoderSequence = 29;

// Outputs are stored in float32. Hugging Face's RMS norm takes its mean square in float32, and
// LLaMA its rotary angles, even in a model of float64.
inline constexpr double kLayerNormTolerance = 2e-7;
inline constexpr double kRmsNormTolerance = 5e-6;

inline constexpr models::BertConfig kTinyBert = {.vocab_size = 97,
                                                 .hidden_size = 64,
                                                 .num_hidden_layers = 2,
                                                 .num_attention_heads = 4,
                                                 .intermediate_size = 160,
                                                 .max_position_embeddings = 64};
inline constexpr models::Gpt2Config kTinyGpt2 = {
    .vocab_size = 97, .n_positions = 64, .n_embd = 64, .n_layer = 2, .n_head = 4, .n_inner = 160};
inline constexpr models::LlamaConfig kTinyLlama = {.vocab_size = 97,
                                                   .hidden_size = 64,
                                                   .intermediate_size = 160,
                                                   .num_hidden_layers = 2,
                                                   .num_attention_heads = 4,
                                                   .num_key_value_heads = 2,
                                                   .head_dim = 16};
inline constexpr models::T5Config kTinyT5 = {.vocab_size = 97,
                                             .d_model = 64,
                                             .d_kv = 16,
                                             .d_ff = 160,
                                             .num_layers = 2,
                                             .num_decoder_layers = 2,
                                             .num_heads = 4};
inline constexpr models::VitConfig kTinyVit = {.hidden_size = 64,
                                               .num_hidden_layers = 2,
                                               .num_attention_heads = 4,
                                               .intermediate_size = 160,
                                               .image_size = 56,
                                               .patch_size = 8};

inline models::T5Config gated(models::T5Config config) {
  config.dense_act_fn = Activation::GeluTanh;
  config.is_gated_act = true;
  return config;
}

inline SafetensorsFile open(const std::string& family) {
  return SafetensorsFile::open(std::string(STOF_SOURCE_DIR "/tests/fixtures/models/") + family +
                               ".safetensors");
}

// What the graph wants: weights as float32 or rounded to its dtype, the case's inputs.
inline HostTensors tensors_for(const Graph& graph, const SafetensorsFile& file,
                               const std::string& name) {
  HostTensors tensors;
  for (const auto& value : graph.ir().values) {
    if (value->role == graph::ValueRole::Result) {
      continue;
    }
    const bool is_weight = value->role == graph::ValueRole::Weight;
    const HostTensor stored(file.view((is_weight ? "weights." : name + ".in.") + value->name));
    tensors[value->name] = stored.cast(value->dtype);
  }
  return tensors;
}

// Positions of the output to compare: those of tokens that are padding say nothing.
inline std::vector<bool> compared(const SafetensorsFile& file, const std::string& name,
                                  std::size_t count, bool skips_padding) {
  std::vector<bool> is_compared(count, true);
  if (!skips_padding) {
    return is_compared;
  }
  const HostTensor keep(file.view(name + ".in.key_padding"));
  const std::size_t hidden = count / static_cast<std::size_t>(keep.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    is_compared[i] = keep.at(static_cast<std::int64_t>(i / hidden)) != 0;
  }
  return is_compared;
}

struct ModelCase {
  std::string file;
  std::string name;
  bool skips_padding = false;
  double tolerance = kLayerNormTolerance;       // of float64
  std::function<Graph(DType)> build = nullptr;  // in that dtype throughout
};

struct Comparison {
  Values actual;
  Values expected;

  // Relative to 1 + |expected|.
  double largest() const { return difference(actual, expected); }
  // The norm of the differences to that of what is expected.
  double relative_norm() const {
    double of_difference = 0;
    double of_expected = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      of_difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      of_expected += expected[i] * expected[i];
    }
    return std::sqrt(of_difference / of_expected);
  }
};

// What a run of the case's graph gave for "last_hidden_state", and what it should be.
inline Comparison compare(const ModelCase& of, const Values& all) {
  const SafetensorsFile file = open(of.file);
  const Values all_expected = values_of(HostTensor(file.view(of.name + ".out")));
  REQUIRE(all.size() == all_expected.size());
  const auto is_compared = compared(file, of.name, all.size(), of.skips_padding);
  Comparison comparison;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_compared[i]) {
      comparison.actual.push_back(all[i]);
      comparison.expected.push_back(all_expected[i]);
    }
  }
  return comparison;
}

inline Mask stored_mask(const std::string& family) {
  const SafetensorsFile file = open(family);
  return Mask::dense(file.view("window.in.mask"));
}

// |q - k| <= 9
inline Mask window() {
  return sliding_window(9, 9);
}

inline Graph tiny_bert(DType dtype, const Mask& mask, bool key_padding = false) {
  return models::bert(kTinyBert, {.batch = kBatch,
                                  .sequence = kSequence,
                                  .dtype = dtype,
                                  .mask = mask,
                                  .key_padding = key_padding});
}

inline Graph tiny_gpt2(DType dtype, const Mask& mask) {
  return models::gpt2(kTinyGpt2,
                      {.batch = kBatch, .sequence = kSequence, .dtype = dtype, .mask = mask});
}

inline Graph tiny_llama(DType dtype, const Mask& mask) {
  return models::llama(kTinyLlama,
                       {.batch = kBatch, .sequence = kSequence, .dtype = dtype, .mask = mask});
}

inline models::T5Options tiny_t5(DType dtype, bool key_padding = false) {
  return {.batch = kBatch,
          .sequence = kSequence,
          .decoder_sequence = kDecoderSequence,
          .dtype = dtype,
          .key_padding = key_padding};
}

inline std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases = {
      {"bert", "full", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_bert(dtype, Mask()); }},
      {"bert", "window", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_bert(dtype, window()); }},
      {"bert", "window", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_bert(dtype, stored_mask("bert")); }},
      {"bert", "padding", true, kLayerNormTolerance,
       [](DType dtype) { return tiny_bert(dtype, Mask(), true); }},
      {"gpt2", "causal", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_gpt2(dtype, Mask()); }},
      {"gpt2", "window", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_gpt2(dtype, window()); }},
      {"gpt2", "window", false, kLayerNormTolerance,
       [](DType dtype) { return tiny_gpt2(dtype, stored_mask("gpt2")); }},
      {"llama", "causal", false, kRmsNormTolerance,
       [](DType dtype) { return tiny_llama(dtype, Mask()); }},
      {"llama", "window", false, kRmsNormTolerance,
       [](DType dtype) { return tiny_llama(dtype, window()); }},
      {"llama", "window", false, kRmsNormTolerance,
       [](DType dtype) { return tiny_llama(dtype, stored_mask("llama")); }},
      {"vit", "full", false, kLayerNormTolerance,
       [](DType dtype) { return models::vit(kTinyVit, {.batch = kBatch, .dtype = dtype}); }}};
  for (const auto& [file, config] :
       {std::pair("t5", kTinyT5), std::pair("t5_gated", gated(kTinyT5))}) {
    cases.push_back({file, "encoder", false, kRmsNormTolerance, [config = config](DType dtype) {
                       return models::t5_encoder(config, tiny_t5(dtype));
                     }});
    cases.push_back(
        {file, "encoder_decoder", false, kRmsNormTolerance,
         [config = config](DType dtype) { return models::t5(config, tiny_t5(dtype)); }});
    cases.push_back({file, "padded", false, kRmsNormTolerance, [config = config](DType dtype) {
                       return models::t5(config, tiny_t5(dtype, true));
                     }});
  }
  return cases;
}

}  // namespace stof::testing
