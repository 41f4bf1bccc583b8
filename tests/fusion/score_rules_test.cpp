// Kernels and settings of attention whose scores are modified, and what these read, on an H200 that
// is not there.
#include "fusion/score_rules.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "fusion/choice_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

namespace {

struct Size {
  std::int64_t batch = 1;
  std::int64_t heads = 12;
  std::int64_t length = 1024;
  std::int64_t head_dim = 64;
};

// `bias_keys`: entries along the keys of a bias of pairs, or 0 for none.
Graph scored(const Mask& mask, const Size& size, std::int64_t bias_keys = 0,
             DType bias_dtype = DType::Float16) {
  Graph graph("attention");
  const Shape shape = {size.batch, size.heads, size.length, size.head_dim};
  const Tensor q = graph.input("q", shape, DType::Float16);
  const Tensor k = graph.input("k", shape, DType::Float16);
  const Tensor v = graph.input("v", shape, DType::Float16);
  Score modified = 5.0 * tanh(score() / 5.0);
  if (bias_keys > 0) {
    const Capture bias =
        graph.capture(graph.input("bias", {size.heads, size.length, bias_keys}, bias_dtype));
    modified = score() + bias(head_index(), query_position(), key_position());
  }
  graph.output("y", graph.attention(q, k, v, {.mask = mask, .score = modified}));
  return graph;
}

fusion::Option chosen(const Graph& graph) {
  return lowered_by(graph).options.at(0).at(0);
}

nlohmann::json modifier_of(const Graph& graph) {
  return lowered_by(graph).specs.at(0).variables.at("mod");
}

}  // namespace

TEST_CASE("bands of narrow heads have steps of 64 keys") {
  const fusion::Option causal_one = chosen(scored(causal(), {.length = 4096}));
  CHECK(causal_one.kernel == "attention_band_sm90");
  CHECK(causal_one.config.at("step") == 64);
  const fusion::Option window = chosen(scored(sliding_window(64, 64), {.length = 4096}));
  CHECK(window.kernel == "attention_band_sm90");
  CHECK(window.config.at("step") == 64);
  CHECK(window.config.at("tile_k") == 192);
  CHECK(window.config.at("stages") == 1);
  CHECK(window.config.at("order") == 3);
  const fusion::Option few = chosen(scored(Mask(), {.batch = 16, .length = 128}));
  CHECK(few.config.at("step") == 64);
  CHECK(few.config.at("tile_k") == 128);
}

TEST_CASE("wide heads, and most runs of keys, have lists") {
  constexpr const char* kLists = "attention_block_wise_sm90";
  CHECK(chosen(scored(causal(), {.length = 4096, .head_dim = 128})).kernel == kLists);
  CHECK(chosen(scored(Mask(), {.batch = 4, .head_dim = 128}, 1024)).kernel == kLists);
  CHECK(chosen(scored(Mask(), {.length = 2048}, 2048)).kernel == kLists);  // not rows
  const Mask packed = documents({0, 300, 1000, 1700, 2048});
  CHECK(chosen(scored(packed, {.batch = 4, .length = 2048})).kernel == kLists);
  CHECK(chosen(scored(prefix(256), {})).kernel == "attention_interval_sm90");
  CHECK(chosen(scored(prefix(256), {}, 1024)).kernel == kLists);
  CHECK(chosen(scored(prefix(256), {.head_dim = 128})).kernel == kLists);
}

TEST_CASE("tiles of biases take the place of a stage") {
  const Graph without = scored(causal(), {.length = 1024});
  CHECK(chosen(without).config.at("stages") == 3);
  const Graph with = scored(causal(), {.length = 1024}, 1024);
  CHECK(chosen(with).config.at("key_groups") == 2);
  CHECK(chosen(with).config.at("stages") == 2);
  CHECK(chosen(with).config.at("overlap") == 0);
}

TEST_CASE("lists have settings that leave registers for what scores read") {
  const auto narrow = chosen(scored(longformer(64, 16), {.length = 4096}, 4096));
  CHECK(narrow.config.at("tile_k") == 64);
  CHECK(narrow.config.at("blocks_per_sm") <= 3);
  const auto wide = chosen(scored(Mask(), {.batch = 4, .head_dim = 128}, 1024));
  CHECK(wide.config.at("tile_q") == 64);
  CHECK(wide.config.at("blocks_per_sm") <= 2);
}

TEST_CASE("a bias whose rows lie along keys is read by tiles") {
  const auto bias = [](std::int64_t keys, DType dtype = DType::Float16) {
    return modifier_of(scored(Mask(), {.length = 200}, keys, dtype)).at("captures").at(0);
  };
  CHECK(bias(200).at("is_tile") == true);
  CHECK(bias(200).at("has_unit_stride") == true);
  CHECK(bias(200).at("is_wide") == false);
  CHECK(bias(201).at("is_tile") == false);                  // rows begin anywhere
  CHECK(bias(200, DType::Float32).at("is_tile") == false);  // four bytes each
  CHECK(modifier_of(scored(Mask(), {.length = 200}, 200)).at("score") ==
        "score + reads.read_score_capture0(head, q_pos, k_pos)");
  CHECK(modifier_of(scored(Mask(), {.length = 200}, 200)).at("score_reads_by_key") == true);
  CHECK(modifier_of(scored(Mask(), {.length = 200})).at("score_reads_by_key") == false);
}

TEST_CASE("a bias that is read at two places of a query, or behind its keys, is not") {
  const auto is_tile = [](const std::function<Score(const Capture&)>& modified) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
    const Capture bias = graph.capture(graph.input("bias", {2, 64, 128}, DType::Float16));
    graph.output("y", graph.attention(q, q, q, {.score = modified(bias)}));
    return modifier_of(graph).at("captures").at(0).at("is_tile").get<bool>();
  };
  const Expr q = query_position();
  const Expr k = key_position();
  CHECK(is_tile([&](const Capture& bias) { return score() + bias(0, q, k) * bias(0, q, k); }));
  CHECK(is_tile([&](const Capture& bias) { return score() + bias(q % 2, 63 - q, k); }));
  CHECK_FALSE(
      is_tile([&](const Capture& bias) { return score() + bias(0, q, k) + bias(1, q, k); }));
  CHECK_FALSE(is_tile([&](const Capture& bias) { return score() + bias(0, q, k + 1); }));
  CHECK_FALSE(is_tile([&](const Capture& bias) { return score() + bias(0, k, k); }));
  // What is asked for before there are scores, for eight keys at once, does not depend on these.
  const auto where = [&](const Expr& condition) {
    return is_tile([&](const Capture& bias) {
      return score() + select(condition, Expr(bias(0, q, k)), Expr(0.0));
    });
  };
  CHECK(where(q % 2 == 0 && head_index() == 1));
  CHECK_FALSE(where(k <= q));
  CHECK_FALSE(where(score() > 0.0));
  CHECK_FALSE(is_tile([&](const Capture& bias) {
    return select(bias(0, q, 3) > 0.0, score() + bias(0, q, k), score());
  }));
  CHECK_FALSE(is_tile([&](const Capture& bias) { return score() + bias(to_int(score()), q, k); }));
  CHECK_FALSE(is_tile([&](const Capture& bias) {
    return select(k > 7 && bias(0, q, k) > 0.0, score(), score() * 2.0);
  }));
}
