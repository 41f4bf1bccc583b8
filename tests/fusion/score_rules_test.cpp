// Kernels and settings of attention whose scores are modified, and what these read, on an H200 that
// is not there.
#include "fusion/score_rules.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
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
  std::int64_t queries = 0;  // or as many as keys
};

enum class Kind { SoftCap, Alibi, Distances, Pairs, TwicePairs, Shown, ShownPairs, Dropped };

Score modifier_of(Graph& graph, const Size& size, Kind kind, std::int64_t keys, DType dtype) {
  const Expr distance = key_position() - query_position();
  const auto bias = [&](const char* name, const Shape& shape) {
    return graph.capture(graph.input(name, shape, dtype));
  };
  const auto pairs = [&](const char* name) {
    return bias(name, {size.heads, size.length, keys})(head_index(), query_position(),
                                                       key_position());
  };
  switch (kind) {
    case Kind::SoftCap:
      return 5.0 * tanh(score() / 5.0);
    case Kind::Alibi:
      return score() + 0.25 * distance;
    case Kind::Distances:
      return score() +
             bias("bias", {size.heads, 2 * size.length})(head_index(), distance + size.length);
    case Kind::Pairs:
      return score() + pairs("bias");
    case Kind::TwicePairs:
      return score() + pairs("bias") + pairs("mask");
    case Kind::Shown:
    case Kind::ShownPairs: {
      const Expr is_seen = graph.capture(graph.input("seen", {size.length, keys}, DType::Bool))(
          query_position(), key_position());
      return select(is_seen, kind == Kind::Shown ? score() : score() + pairs("bias"),
                    score() - 1e4);
    }
    case Kind::Dropped:
      return select(keep(7, query_position(), key_position(), 0.9), score(), score() - 1e4);
  }
  return score();
}

// `bias_keys`: entries along the keys of a bias of pairs, if not as many as there are.
Graph scored(const Mask& mask, const Size& size, Kind kind = Kind::SoftCap,
             std::int64_t bias_keys = 0, DType bias_dtype = DType::Float16) {
  Graph graph("attention");
  const Shape shape = {size.batch, size.heads, size.length, size.head_dim};
  const std::int64_t queries = size.queries > 0 ? size.queries : size.length;
  const Tensor q =
      graph.input("q", {size.batch, size.heads, queries, size.head_dim}, DType::Float16);
  const Tensor k = graph.input("k", shape, DType::Float16);
  const Tensor v = graph.input("v", shape, DType::Float16);
  const Score modified =
      modifier_of(graph, size, kind, bias_keys > 0 ? bias_keys : size.length, bias_dtype);
  graph.output("y", graph.attention(q, k, v, {.mask = mask, .score = modified}));
  return graph;
}

fusion::Option chosen(const Graph& graph) {
  return lowered_by(graph).options.at(0).at(0);
}

nlohmann::json variables_of(const Graph& graph) {
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

TEST_CASE("bands have steps of as many keys as registers allow") {
  const auto window = [](Kind kind) {
    return chosen(scored(sliding_window(64, 64), {.length = 4096}, kind)).config;
  };
  CHECK(window(Kind::Alibi).at("step") == 192);
  CHECK(window(Kind::Alibi).at("order") == 3);
  CHECK(window(Kind::SoftCap).at("step") == 64);
  CHECK(window(Kind::Distances).at("step") == 64);
  CHECK(window(Kind::Dropped).at("step") == 64);
  CHECK(chosen(scored(causal(), {.length = 4096}, Kind::Alibi)).config.at("step") == 128);
  CHECK(chosen(scored(causal(), {.length = 4096}, Kind::Distances)).config.at("step") == 64);
}

constexpr const char* kLists = "attention_block_wise_sm90";

TEST_CASE("most runs of keys, and rows of narrow heads with biases, have lists") {
  CHECK(chosen(scored(Mask(), {.length = 2048}, Kind::Pairs)).kernel == kLists);  // not rows
  const Mask packed = documents({0, 300, 1000, 1700, 2048});
  CHECK(chosen(scored(packed, {.batch = 4, .length = 2048})).kernel == kLists);
  CHECK(chosen(scored(prefix(256), {})).kernel == "attention_interval_sm90");
  CHECK(chosen(scored(prefix(256), {}, Kind::Pairs)).kernel == kLists);
  CHECK(chosen(scored(prefix(256), {.head_dim = 128})).kernel == kLists);
}

// Of wide heads: "lists", or the tiles of a band.
std::string wide_tiles(const Mask& mask, const Size& size, Kind kind) {
  const fusion::Option option = chosen(scored(mask, size, kind));
  const kernel::KernelConfig& config = option.config;
  return option.kernel == kLists
             ? "lists"
             : fmt::format("{} {} x {}, {} groups, {} stages, {} blocks, overlap {}, order {}",
                           option.kernel.substr(std::string("attention_").size()),
                           config.at("tile_q"), config.at("tile_k"), config.at("key_groups"),
                           config.at("stages"), config.at("blocks_per_sm"), config.at("overlap"),
                           config.at("order"));
}

TEST_CASE("few tiles of wide heads keep the setting of bands") {
  constexpr const char* kFew = "band_sm90 64 x 128, 2 groups, 3 stages, 1 blocks, overlap 1";
  const auto few = [&](const Mask& mask, const Size& size, Kind kind) {
    return wide_tiles(mask, size, kind).starts_with(kFew);
  };
  const Size causal_one = {.batch = 2, .heads = 5, .length = 256, .head_dim = 96};
  CHECK(few(causal(), causal_one, Kind::SoftCap));
  CHECK(few(causal(), causal_one, Kind::Pairs));
  // Tiles of two biases take the place of a stage.
  for (const std::int64_t head_dim : {80, 96, 128}) {
    CHECK(wide_tiles(causal(), {.batch = 2, .heads = 5, .length = 256, .head_dim = head_dim},
                     Kind::TwicePairs) ==
          "band_sm90 64 x 128, 2 groups, 2 stages, 1 blocks, overlap 1, order 1");
  }
  const Size window = {.heads = 5, .length = 1504, .head_dim = 112};
  CHECK(few(sliding_window(511, 0), window, Kind::SoftCap));
  CHECK(wide_tiles(sliding_window(511, 0), window, Kind::Pairs) == "lists");
  // A tile a head, of as many keys as lists have parts of.
  const auto one = [](std::int64_t keys) {
    return Size{.batch = 6, .heads = 5, .length = keys, .head_dim = 96, .queries = 64};
  };
  CHECK(few(Mask(), one(640), Kind::SoftCap));
  CHECK(wide_tiles(Mask(), one(1500), Kind::SoftCap) == "lists");
}

TEST_CASE("windows of wide heads are bands, but for long ones with biases") {
  const Size size = {.batch = 12, .heads = 14, .length = 2304, .head_dim = 96};
  constexpr const char* kSmall =
      "band_sm90 64 x 64, 1 groups, 2 stages, 2 blocks, overlap 1, order 0";
  constexpr const char* kLarge =
      "band_sm90 128 x 64, 1 groups, 2 stages, 2 blocks, overlap 0, order ";
  for (const Kind kind : {Kind::SoftCap, Kind::Alibi, Kind::Distances, Kind::Pairs}) {
    CHECK(wide_tiles(sliding_window(30, 30), size, kind) == kSmall);
  }
  for (const Kind kind : {Kind::SoftCap, Kind::Alibi, Kind::Distances}) {
    CHECK(wide_tiles(sliding_window(48, 48), size, kind).starts_with(kLarge));
    CHECK(wide_tiles(sliding_window(511, 0), size, kind).starts_with(kLarge));
  }
  CHECK(wide_tiles(sliding_window(48, 48), size, Kind::Pairs) == "lists");
  CHECK(wide_tiles(sliding_window(511, 0), size, Kind::Pairs) == "lists");
  CHECK(wide_tiles(Mask(), {.batch = 4, .heads = 8, .length = 150, .head_dim = 80},
                   Kind::SoftCap) == kSmall);
}

TEST_CASE("causal rows of wide heads have large tiles, and full ones where much is read") {
  constexpr const char* kLarge =
      "band_sm90 128 x 64, 1 groups, 2 stages, 2 blocks, overlap 0, order ";
  const auto is_large = [&](const Mask& mask, const Size& size, Kind kind) {
    return wide_tiles(mask, size, kind).starts_with(kLarge);
  };
  const auto of = [](std::int64_t length, std::int64_t head_dim) {
    return Size{.batch = 8, .heads = 20, .length = length, .head_dim = head_dim};
  };
  for (const Kind kind : {Kind::SoftCap, Kind::Alibi, Kind::Distances}) {
    CHECK(is_large(causal(), of(1280, 128), kind));
    CHECK_FALSE(is_large(causal(), of(448, 80), kind));
  }
  CHECK(wide_tiles(causal(), of(1280, 128), Kind::SoftCap).ends_with("order 1"));
  CHECK(is_large(causal(), of(1280, 128), Kind::Pairs));
  CHECK_FALSE(is_large(Mask(), of(1024, 128), Kind::SoftCap));
  CHECK(is_large(Mask(), of(1024, 72), Kind::SoftCap));  // rows that fill no lines
  CHECK(is_large(Mask(), of(1024, 128), Kind::Distances));
  CHECK_FALSE(is_large(causal(), of(1280, 160), Kind::Alibi));
  CHECK(wide_tiles(Mask(), {.heads = 14, .head_dim = 96}, Kind::Pairs)
            .starts_with("band_sm90 128 x 64, 1 groups, 3 stages, 1 blocks, overlap 1"));
}

TEST_CASE("tiles of biases take the place of a stage") {
  const Graph without = scored(causal(), {.length = 1024});
  CHECK(chosen(without).config.at("stages") == 3);
  const Graph with = scored(causal(), {.length = 1024}, Kind::Pairs);
  CHECK(chosen(with).config.at("key_groups") == 2);
  CHECK(chosen(with).config.at("stages") == 2);
  CHECK(chosen(with).config.at("overlap") == 0);
}

TEST_CASE("beside tiles of bytes an SM has room for three bands of narrow heads") {
  const auto blocks = [](Kind kind, std::int64_t batch = 4) {
    const Size size = {.batch = batch, .length = 512};
    return chosen(scored(causal(), size, kind)).config.at("blocks_per_sm");
  };
  CHECK(wide_tiles(causal(), {.batch = 4, .length = 512}, Kind::Shown) ==
        "band_sm90 64 x 64, 1 groups, 2 stages, 3 blocks, overlap 0, order 1");
  CHECK(blocks(Kind::Pairs) == 2);
  CHECK(blocks(Kind::ShownPairs) == 2);
  CHECK(blocks(Kind::SoftCap) == 2);
  CHECK(blocks(Kind::Shown, 1) <= 2);  // two warp groups, of half as many registers
  // Large tiles keep what they have beside biases.
  for (const std::int64_t head_dim : {40, 56}) {
    const Size size = {.batch = 4, .heads = 16, .length = 512, .head_dim = head_dim};
    CHECK(wide_tiles(Mask(), size, Kind::Shown) == wide_tiles(Mask(), size, Kind::Pairs));
  }
}

TEST_CASE("lists have as many blocks as leave registers for what scores read") {
  const auto lists = [](const Mask& mask, const Size& size, Kind kind) {
    const fusion::Option option = chosen(scored(mask, size, kind));
    REQUIRE(option.kernel == kLists);
    return option.config;
  };
  const auto blocks = [&](const Mask& mask, const Size& size, Kind kind) {
    return lists(mask, size, kind).at("blocks_per_sm");
  };
  const Mask mask = longformer(24, 8);
  const auto of = [](std::int64_t head_dim) {
    return Size{.batch = 48, .heads = 40, .length = 576, .head_dim = head_dim};
  };
  CHECK(blocks(mask, of(64), Kind::Alibi) == 4);
  CHECK(blocks(mask, of(64), Kind::Distances) == 4);
  CHECK(blocks(mask, of(64), Kind::SoftCap) == 3);
  CHECK(blocks(mask, of(64), Kind::Dropped) == 3);
  CHECK(blocks(mask, of(64), Kind::Pairs) == 4);
  CHECK(blocks(prefix(100), of(64), Kind::Pairs) == 3);
  CHECK(blocks(mask, of(32), Kind::Pairs) == 4);
  CHECK(blocks(mask, of(32), Kind::Shown) == 3);  // with 96 registers, some are spilled
  CHECK(blocks(mask, of(128), Kind::SoftCap) == 2);
  CHECK(blocks(mask, of(128), Kind::Pairs) == 3);
  for (const Kind kind : {Kind::SoftCap, Kind::Alibi, Kind::Distances, Kind::Pairs}) {
    for (const std::int64_t head_dim : {40, 64, 128}) {
      CHECK(lists(mask, of(head_dim), kind).at("tile_q") == 64);
      CHECK(lists(mask, of(head_dim), kind).at("tile_k") == 64);
    }
  }
  // Large ones where rows fill no lines, and no bias takes shared memory.
  const Size thin = {.batch = 2, .heads = 25, .length = 4096, .head_dim = 72, .queries = 200};
  CHECK(lists(Mask(), thin, Kind::Alibi).at("tile_q") == 128);
  CHECK(lists(Mask(), thin, Kind::Pairs).at("tile_q") == 64);
}

TEST_CASE("two blocks of heads of 192 dimensions share an SM where scores are modified") {
  const auto config = [](std::int64_t batch, bool is_modified) {
    const Size size = {.batch = batch, .heads = 12, .length = 1500, .head_dim = 192};
    Graph graph("attention");
    const Tensor q = graph.input("q", {batch, 12, 1500, 192}, DType::Float16);
    graph.output("y", graph.attention(q, q, q, {.mask = longformer(38, 8)}));
    return chosen(is_modified ? scored(longformer(38, 8), size, Kind::Alibi) : graph).config;
  };
  CHECK(config(6, true).at("blocks_per_sm") == 2);
  CHECK(config(6, true).at("slots") == 3);
  CHECK(config(6, false).at("blocks_per_sm") == 1);
  CHECK(config(1, true).at("blocks_per_sm") == 1);
}

TEST_CASE("kernels know whether a score has tanh") {
  CHECK(variables_of(scored(causal(), {})).at("score_has_tanh") == true);
  CHECK(variables_of(scored(causal(), {}))
            .at("score")
            .get<std::string>()
            .find("reads.tanh(stof::score_quotient(score, ") != std::string::npos);
  CHECK(variables_of(scored(causal(), {}, Kind::Alibi)).at("score_has_tanh") == false);
}

TEST_CASE("a bias whose rows lie along keys is read by tiles") {
  const auto bias = [](std::int64_t keys, DType dtype = DType::Float16) {
    return variables_of(scored(Mask(), {.length = 200}, Kind::Pairs, keys, dtype))
        .at("captures")
        .at(0);
  };
  CHECK(bias(200).at("is_tile") == true);
  CHECK(bias(200).at("has_unit_stride") == true);
  CHECK(bias(200).at("is_wide") == false);
  CHECK(bias(201).at("is_tile") == false);                  // rows begin anywhere
  CHECK(bias(200, DType::Float32).at("is_tile") == false);  // four bytes each
  CHECK(variables_of(scored(Mask(), {.length = 200}, Kind::Pairs)).at("score") ==
        "score + reads.read_score_capture0(head, q_pos, k_pos)");
  CHECK(variables_of(scored(Mask(), {.length = 200}, Kind::Pairs)).at("score_reads_by_key") ==
        true);
  CHECK(variables_of(scored(Mask(), {.length = 200})).at("score_reads_by_key") == false);
}

TEST_CASE("a mask of bytes whose rows lie along keys is read by tiles") {
  const auto variables = [](std::int64_t keys, bool has_bias) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
    const Capture bias = graph.capture(graph.input("bias", {64}, DType::Float32));
    const Capture keep = graph.capture(graph.input("keep", {64, keys}, DType::Bool));
    const Expr score = has_bias ? stof::score() + bias(key_position()) : stof::score();
    const Expr seen = keep(query_position(), key_position());
    graph.output("y", graph.attention(q, q, q, {.score = select(seen, score, 0.0)}));
    return variables_of(graph);
  };
  const auto is_tile = [](const nlohmann::json& mod) {
    return std::ranges::count_if(mod.at("captures"), [](const nlohmann::json& capture) {
             return capture.at("is_tile").get<bool>();
           }) == 1;
  };
  CHECK(is_tile(variables(64, false)));
  CHECK(is_tile(variables(80, false)));
  CHECK_FALSE(is_tile(variables(72, false)));  // rows begin anywhere
  CHECK(variables(64, false).at("score_reads_bytes_alone") == true);
  CHECK(variables(72, false).at("score_reads_bytes_alone") == false);
  CHECK(variables(64, true).at("score_reads_bytes_alone") == false);
  CHECK(variables(64, true).at("score_reads_by_key") == true);
}

TEST_CASE("a bias that is read at two places of a query, or behind its keys, is not") {
  const auto is_tile = [](const std::function<Score(const Capture&)>& modified) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
    const Capture bias = graph.capture(graph.input("bias", {2, 64, 128}, DType::Float16));
    graph.output("y", graph.attention(q, q, q, {.score = modified(bias)}));
    return variables_of(graph).at("captures").at(0).at("is_tile").get<bool>();
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
