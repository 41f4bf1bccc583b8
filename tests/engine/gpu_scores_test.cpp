// Score modifiers of every kind in every kernel that takes them, against float64.
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "attention_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;           // NOLINT(google-build-using-namespace)
using namespace stof::testing;  // NOLINT(google-build-using-namespace)

namespace {

// One of every kind for the shape.
std::vector<ScoreModifier> modifiers_of(const AttentionCase& of) {
  constexpr double kLargeCap = 1e6;  // next to none: tanh has to be exact near 0
  return {alibi(of.heads, of.kv_len - of.q_len),
          soft_cap(2),
          soft_cap(10),  // whose tanh is of numbers near 0
          soft_cap(kLargeCap),
          capped_bias(of.heads, of.q_len, of.kv_len),
          relative_bias(of.heads, of.q_len, of.kv_len),
          bucket_bias(of.heads, 31),
          pair_bias(of.heads, of.q_len, of.kv_len),
          pair_bias(of.heads, of.q_len, of.kv_len, true),
          two_biases(of.heads, of.q_len, of.kv_len),
          dropped(),
          key_bias(of.batch, of.kv_len)};
}

AttentionCase shape(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                    std::int64_t q_len, std::int64_t kv_len, std::int64_t head_dim) {
  return {.name = {},
          .mask = {},
          .batch = batch,
          .heads = heads,
          .kv_heads = kv_heads,
          .q_len = q_len,
          .kv_len = kv_len,
          .head_dim = head_dim,
          .value_dim = head_dim};
}

// With every kind of modifier; the kernel is that of sm_90.
void add_all(std::vector<AttentionCase>& cases, const char* name, const Mask& mask,
             AttentionCase of, const char* kernel) {
  of.name = name;
  of.mask = mask;
  of.kernel_of_sm90 = kernel;
  for (const ScoreModifier& modifier : modifiers_of(of)) {
    of.score = modifier;
    of.dtype = cases.size() % 2 == 0 ? DType::Float16 : DType::BFloat16;
    cases.push_back(of);
  }
}

TEST_CASE("modified scores of bands") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, std::int64_t batch, std::int64_t heads,
                       std::int64_t length, std::int64_t head_dim) {
    AttentionCase of = shape(batch, heads, heads, length, length, head_dim);
    of.has_heads_inside = length == 200;
    add_all(cases, name, mask, of, "attention/band_sm90");
  };
  for (const std::int64_t length : {49, 64, 197, 200, 384}) {
    add("full", Mask(), 2, 6, length, 64);
    add("causal", causal(), 2, 6, length, 40);
  }
  add("full", Mask(), 24, 8, 200, 32);
  add("full", Mask(), 16, 12, 384, 64);
  add("causal", causal(), 1, 12, 1000, 64);
  add("causal", causal(), 6, 12, 577, 64);
  add("causal", causal(), 1, 32, 1500, 64);
  add("sliding", sliding_window(40, 40), 2, 8, 1001, 64);
  add("sliding", sliding_window(61, 61), 2, 8, 1000, 64);
  add("sliding", sliding_window(20, 0), 3, 8, 1200, 32);
  add("window", sliding_window(500, 0), 4, 8, 1200, 64);
  for (const std::int64_t head_dim : {72, 80, 128}) {
    add("few tiles", causal(), 2, 4, 321, head_dim);
    add("few keys", Mask(), 2, 4, 150, head_dim);
    add("short window", sliding_window(20, 20), 2, 8, 1001, head_dim);
    // Some biases have lists there.
    add_all(cases, "causal", causal(), shape(4, 16, 16, 768, 768, head_dim), "");
    add_all(cases, "window", sliding_window(48, 48), shape(6, 12, 12, 1001, 1001, head_dim), "");
  }
  CHECK(faults_of(cases) == "");
}

TEST_CASE("modified scores of lists, runs of keys, rows and few queries") {
  std::vector<AttentionCase> cases;
  const auto add = [&](const char* name, const Mask& mask, const AttentionCase& of,
                       const char* kernel = "") { add_all(cases, name, mask, of, kernel); };
  constexpr const char* kLists = "attention/block_wise_sm90";
  for (const std::int64_t head_dim : {80, 128, 160, 256}) {
    add("causal", causal(), shape(6, 12, 6, 321, 321, head_dim), kLists);
    add("full", Mask(), shape(6, 12, 12, 200, 384, head_dim), kLists);
  }
  add("longformer", longformer(30, 8), shape(1, 6, 6, 900, 900, 64), kLists);
  add("bigbird", bigbird(16, 1, 1, 2, 11), shape(2, 6, 6, 640, 640, 64), kLists);
  add("documents", documents({0, 100, 333, 640}), shape(6, 12, 12, 640, 640, 128), kLists);
  add("prefix", prefix(250), shape(1, 12, 12, 1000, 1000, 64));
  add("scattered", random_tokens(0.01, 5), shape(1, 8, 8, 1000, 1000, 64), "attention/row_wise");
  for (const std::int64_t queries : {1, 5, 16}) {
    const char* const kernel = queries < 16 ? "attention/few_queries" : "";
    add("few", Mask(), shape(2, 8, 2, queries, 600, 64), kernel);  // heads as rows of key heads
    add("few", Mask(), shape(2, 4, 4, queries, 600, 64), "attention/few_queries");
  }
  add("one", Mask(), shape(2, 6, 6, 1, 1, 64));
  AttentionCase ragged = shape(3, 6, 6, 500, 500, 64);
  ragged.kv_lengths = {500, 0, 129};
  add("lengths", causal(), ragged);
  CHECK(faults_of(cases) == "");
}

TEST_CASE("random draws of mask, shape and modifier") {
  std::mt19937 generator(21);
  std::vector<AttentionCase> cases = random_cases(2000, generator);
  for (AttentionCase& drawn : cases) {
    const std::vector<ScoreModifier> modifiers = modifiers_of(drawn);
    drawn.score = modifiers[generator() % modifiers.size()];
  }
  CHECK(faults_of(cases) == "");
}

}  // namespace
