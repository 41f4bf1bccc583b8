// Tiny models of Hugging Face with their inputs and outputs, which were computed in float64 and
// stored in float32: every case of every file, through the builders of examples/models.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.hpp"
#include "mask/evaluate.hpp"
#include "models/bert.hpp"
#include "models/gpt2.hpp"
#include "models/llama.hpp"
#include "models/t5.hpp"
#include "models/vit.hpp"
#include "testing.hpp"

using namespace stof::testing;
using stof::Dim;
using stof::DType;
using stof::Graph;
using stof::HostTensor;
using stof::Mask;
using stof::Precision;
using stof::io::SafetensorsFile;

namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kSequence = 48;
constexpr std::int64_t kDecoderSequence = 29;

// Outputs are stored in float32. Hugging Face's RMS norm takes its mean square in float32, and
// LLaMA its rotary angles, even in a model of float64.
constexpr double kLayerNormTolerance = 2e-7;
constexpr double kRmsNormTolerance = 5e-6;

constexpr models::BertConfig kTinyBert = {.vocab_size = 97,
                                          .hidden_size = 64,
                                          .num_hidden_layers = 2,
                                          .num_attention_heads = 4,
                                          .intermediate_size = 160,
                                          .max_position_embeddings = 64};
constexpr models::Gpt2Config kTinyGpt2 = {
    .vocab_size = 97, .n_positions = 64, .n_embd = 64, .n_layer = 2, .n_head = 4, .n_inner = 160};
constexpr models::LlamaConfig kTinyLlama = {.vocab_size = 97,
                                            .hidden_size = 64,
                                            .intermediate_size = 160,
                                            .num_hidden_layers = 2,
                                            .num_attention_heads = 4,
                                            .num_key_value_heads = 2,
                                            .head_dim = 16};
constexpr models::T5Config kTinyT5 = {.vocab_size = 97,
                                      .d_model = 64,
                                      .d_kv = 16,
                                      .d_ff = 160,
                                      .num_layers = 2,
                                      .num_decoder_layers = 2,
                                      .num_heads = 4};
constexpr models::VitConfig kTinyVit = {.hidden_size = 64,
                                        .num_hidden_layers = 2,
                                        .num_attention_heads = 4,
                                        .intermediate_size = 160,
                                        .image_size = 56,
                                        .patch_size = 8};

models::T5Config gated(models::T5Config config) {
  config.dense_act_fn = stof::Activation::GeluTanh;
  config.is_gated_act = true;
  return config;
}

SafetensorsFile open(const std::string& family) {
  return SafetensorsFile::open(std::string(STOF_SOURCE_DIR "/tests/fixtures/models/") + family +
                               ".safetensors");
}

// What the graph wants: weights as float32 or rounded to its dtype, the case's inputs.
HostTensors tensors_for(const Graph& graph, const SafetensorsFile& file, const std::string& name) {
  HostTensors tensors;
  for (const auto& value : graph.ir().values) {
    if (value->role == stof::graph::ValueRole::Result) {
      continue;
    }
    const bool is_weight = value->role == stof::graph::ValueRole::Weight;
    const HostTensor stored(file.view((is_weight ? "weights." : name + ".in.") + value->name));
    tensors[value->name] = stored.cast(value->dtype);
  }
  return tensors;
}

// Positions of the output to compare: those of tokens that are padding say nothing.
std::vector<bool> compared(const SafetensorsFile& file, const std::string& name, std::size_t count,
                           bool skips_padding) {
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

struct Case {
  std::string file;
  std::string name;
  bool skips_padding = false;
  double tolerance = kLayerNormTolerance;
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

Comparison compare(const Case& of, const Graph& graph, Precision precision) {
  const SafetensorsFile file = open(of.file);
  HostTensors tensors = tensors_for(graph, file, of.name);
  const Values all =
      run_graph(graph, tensors, {.precision = precision}).at("last_hidden_state").values;
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

// Checks one case in every precision, as it is built and normalised; `build` takes the dtype.
template <typename Build>
void check_case(const Case& of, Build build) {
  const Graph graph = build(DType::Float32);
  const double exact = compare(of, graph, Precision::Float64).largest();
  const double primitive = compare(of, normalised(graph), Precision::Float64).largest();
  const double fast = compare(of, graph, Precision::Float32).largest();
  const double half = compare(of, build(DType::Float16), Precision::Model).relative_norm();
  const double brain = compare(of, build(DType::BFloat16), Precision::Model).relative_norm();
  INFO(of.file << " " << of.name << ": float64 " << exact << ", normalised " << primitive
               << ", float32 " << fast << ", float16 " << half << ", bfloat16 " << brain);
  CHECK(exact < of.tolerance);
  CHECK(primitive < of.tolerance);
  CHECK(fast < 1e-5);
  CHECK(half < 4e-3);
  CHECK(brain < 4e-2);
}

Mask stored_mask(const std::string& family) {
  const SafetensorsFile file = open(family);
  return Mask::dense(file.view("window.in.mask"));
}

// |q - k| <= 9
Mask window() {
  return stof::sliding_window(9, 9);
}

void check_same_mask(const std::string& family, const Mask& mask) {
  const SafetensorsFile file = open(family);
  const HostTensor stored(file.view("window.in.mask"));
  const auto bits = stof::mask::evaluate_all(mask, {.q_len = kSequence, .kv_len = kSequence});
  for (std::int64_t i = 0; i < kSequence * kSequence; ++i) {
    CHECK(bits.at(0, 0, i / kSequence, i % kSequence) == (stored.at(i) != 0));
  }
}

Graph tiny_bert(DType dtype, const Mask& mask, bool key_padding = false) {
  return models::bert(kTinyBert, {.batch = kBatch,
                                  .sequence = kSequence,
                                  .dtype = dtype,
                                  .mask = mask,
                                  .key_padding = key_padding});
}

Graph tiny_gpt2(DType dtype, const Mask& mask) {
  return models::gpt2(kTinyGpt2,
                      {.batch = kBatch, .sequence = kSequence, .dtype = dtype, .mask = mask});
}

Graph tiny_llama(DType dtype, const Mask& mask) {
  return models::llama(kTinyLlama,
                       {.batch = kBatch, .sequence = kSequence, .dtype = dtype, .mask = mask});
}

models::T5Options tiny_t5(DType dtype, bool key_padding = false) {
  return {.batch = kBatch,
          .sequence = kSequence,
          .decoder_sequence = kDecoderSequence,
          .dtype = dtype,
          .key_padding = key_padding};
}

}  // namespace

TEST_CASE("the stored masks are windows") {
  check_same_mask("bert", window());
  check_same_mask("gpt2", window() && stof::causal());
  check_same_mask("llama", window() && stof::causal());
}

TEST_CASE("bert") {
  check_case({"bert", "full"}, [](DType dtype) { return tiny_bert(dtype, Mask()); });
  check_case({"bert", "window"}, [](DType dtype) { return tiny_bert(dtype, window()); });
  check_case({"bert", "window"}, [](DType dtype) { return tiny_bert(dtype, stored_mask("bert")); });
  check_case({"bert", "padding", true}, [](DType dtype) { return tiny_bert(dtype, Mask(), true); });
}

TEST_CASE("gpt2") {
  check_case({"gpt2", "causal"}, [](DType dtype) { return tiny_gpt2(dtype, Mask()); });
  check_case({"gpt2", "window"}, [](DType dtype) { return tiny_gpt2(dtype, window()); });
  check_case({"gpt2", "window"}, [](DType dtype) { return tiny_gpt2(dtype, stored_mask("gpt2")); });
}

TEST_CASE("llama") {
  check_case({"llama", "causal", false, kRmsNormTolerance},
             [](DType dtype) { return tiny_llama(dtype, Mask()); });
  check_case({"llama", "window", false, kRmsNormTolerance},
             [](DType dtype) { return tiny_llama(dtype, window()); });
  check_case({"llama", "window", false, kRmsNormTolerance},
             [](DType dtype) { return tiny_llama(dtype, stored_mask("llama")); });
}

TEST_CASE("t5, plain and gated") {
  for (const auto& [file, config] :
       {std::pair("t5", kTinyT5), std::pair("t5_gated", gated(kTinyT5))}) {
    check_case({file, "encoder", false, kRmsNormTolerance}, [&config = config](DType dtype) {
      return models::t5_encoder(config, tiny_t5(dtype));
    });
    check_case({file, "encoder_decoder", false, kRmsNormTolerance},
               [&config = config](DType dtype) { return models::t5(config, tiny_t5(dtype)); });
    check_case({file, "padded", false, kRmsNormTolerance}, [&config = config](DType dtype) {
      return models::t5(config, tiny_t5(dtype, true));
    });
  }
}

TEST_CASE("vit") {
  check_case({"vit", "full"},
             [](DType dtype) { return models::vit(kTinyVit, {.batch = kBatch, .dtype = dtype}); });
}

TEST_CASE("a model with symbolic batch and sequence gives what a fixed one gives") {
  const SafetensorsFile file = open("bert");
  const Graph graph = models::bert(kTinyBert, {.batch = Dim::symbol("batch", 1, 8),
                                               .sequence = Dim::symbol("seq", 1, 64),
                                               .dtype = DType::Float32,
                                               .mask = window()});
  CHECK(compare({"bert", "window"}, graph, Precision::Float64).largest() < kLayerNormTolerance);
}

TEST_CASE("models of real sizes can be built") {
  CHECK(models::bert(models::kBertLarge, {.sequence = 512}).ir().outputs.size() == 1);
  CHECK(models::gpt2(models::kGpt2Medium, {.sequence = 1024}).ir().outputs.size() == 1);
  CHECK(models::llama(models::kLlama7B, {.sequence = 4096}).ir().outputs.size() == 1);
  CHECK(models::llama(models::kLlama3_8B, {.sequence = 4096}).ir().outputs.size() == 1);
  CHECK(models::t5(models::kFlanT5Base, {.sequence = 512}).ir().outputs.size() == 1);
  CHECK(models::vit(models::kVitLarge, {}).ir().outputs.size() == 1);
  CHECK(models::kVitBase.tokens() == 197);
}
