// Which kernel where rows see a run of keys each, and which setting, on an H200 that is not there.
#include "fusion/interval_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fusion/choice_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

namespace {

const std::string kIntervals = "attention_interval_sm90";

// Documents of so many tokens, one behind the other.
Mask documents_of(std::int64_t tokens, std::int64_t length) {
  std::vector<std::int32_t> offsets = {0};
  while (offsets.back() < length) {
    offsets.push_back(static_cast<std::int32_t>(std::min(offsets.back() + tokens, length)));
  }
  return documents(offsets);
}

Graph attention_of(const Mask& mask, std::int64_t heads, std::int64_t length, std::int64_t head_dim,
                   std::int64_t batch = 1) {
  Graph graph("attention");
  const auto q = graph.input("q", {batch, heads, length, head_dim}, DType::Float16);
  graph.output("y", graph.attention(q, q, q, {.mask = mask}));
  return graph;
}

// Of the kernel for intervals, nothing where another one is chosen.
kernel::KernelConfig config_of(const Graph& graph) {
  const fusion::Option option = lowered_by(graph).options.at(0).at(0);
  return option.kernel == kIntervals ? option.config : kernel::KernelConfig();
}

// Queries of a tile, 0 where another kernel is chosen.
std::int64_t tile_q(const Graph& graph) {
  const kernel::KernelConfig config = config_of(graph);
  return config.empty() ? 0 : config.at("tile_q");
}

}  // namespace

TEST_CASE("documents of wide heads have a kernel of their own") {
  CHECK(tile_q(attention("doc_causal", 32, 16384, 128)) == 128);
  CHECK(tile_q(attention("doc_causal", 64, 2048, 96)) == 128);
  CHECK(tile_q(attention_of(documents_of(700, 4096), 32, 4096, 128)) == 128);
  CHECK(tile_q(attention("doc_causal", 8, 4096, 128)) == 0);  // 3.9 tiles of 64 for each SM
  CHECK(tile_q(attention("doc_causal", 8, 4096, 96)) == 128);
  CHECK(tile_q(attention("doc_causal", 6, 4096, 128)) == 64);
  CHECK(tile_q(attention("doc_causal", 8, 2048, 128)) == 64);
  CHECK(tile_q(attention("doc_causal", 32, 8192, 256)) == 0);
  CHECK(tile_q(attention("doc_causal", 32, 8192, 128, 5.0 * tanh(score() / 5.0))) == 0);
  CHECK(kernel_of(attention("doc_causal", 32, 8192, 128), "a100") != kIntervals);
}

TEST_CASE("documents of narrow heads have it where query tiles are few") {
  const auto config = [](std::int64_t heads, std::int64_t length, std::int64_t head_dim = 64) {
    return config_of(attention("doc_causal", heads, length, head_dim));
  };
  CHECK(config(12, 1024).at("order") == 2);
  CHECK(config(12, 2048).at("key_groups") == 1);
  CHECK(config(12, 2048).at("order") == 0);
  CHECK(config(12, 4096).empty());
  CHECK(config(12, 1024, 40).at("tile_q") == 128);
  // Long ones that see all of a document are walked along by lists.
  const auto all_of = [](std::int64_t tokens) {
    return attention_of(documents({0, static_cast<std::int32_t>(tokens), 2048}), 4, 2048, 64);
  };
  CHECK(config_of(all_of(1216)).at("key_groups") == 2);
  CHECK(config_of(all_of(1408)).empty());
}

TEST_CASE("rows that grow have what causal ones have") {
  const auto config = [](std::int64_t batch, std::int64_t heads, std::int64_t length,
                         std::int64_t head_dim) {
    return config_of(attention_of(prefix(length / 4), heads, length, head_dim, batch));
  };
  const kernel::KernelConfig pairs = {{"tile_q", 64},       {"tile_k", 128}, {"stages", 3},
                                      {"blocks_per_sm", 2}, {"overlap", 1},  {"key_groups", 2},
                                      {"order", 2}};
  CHECK(config(1, 12, 1024, 64) == pairs);
  CHECK(config(1, 3, 2048, 64).at("blocks_per_sm") == 1);  // an SM each
  CHECK(config(1, 2, 2048, 64).empty());                   // lists share long rows out
  CHECK(config(1, 8, 2048, 128).at("key_groups") == 2);
  CHECK(config(1, 20, 512, 128).at("order") == 2);
  CHECK(config(2, 14, 768, 64).at("order") == 1);  // elements side by side
  CHECK(config(1, 40, 768, 64).at("order") == 0);
  CHECK(config(1, 14, 4096, 64).at("blocks_per_sm") == 4);
  CHECK(config(2, 14, 1024, 64).at("order") == 1);
  CHECK(config(8, 16, 1024, 64).empty());
  CHECK(config(16, 16, 1024, 128).at("order") == 1);
  CHECK(config(16, 20, 512, 128).at("order") == 0);  // so many that they leave L2
  CHECK(config(16, 20, 400, 128).empty());           // a fifth of the tiles would be empty
  CHECK(config(4, 4, 2304, 96).at("tile_q") == 128);
  CHECK(config(4, 4, 2304, 128).empty());  // 50.4 us, along intervals 57.4
}

TEST_CASE("rows that all see as many keys have what full ones have") {
  const auto config = [](std::int64_t heads, std::int64_t length) {
    return config_of(attention_of(Mask(key_position() < length - 100), heads, length, 128));
  };
  CHECK(config(8, 1024).at("key_groups") == 2);
  CHECK(config(16, 1024).at("key_groups") == 1);
  CHECK(config(32, 1024).at("tile_q") == 128);
  CHECK(config(10, 2048).empty());
}

TEST_CASE("few queries, queries of one tile and few long rows go elsewhere") {
  const auto chosen = [](const Expr& seen, std::int64_t batch, std::int64_t heads,
                         std::int64_t kv_heads, std::int64_t q_len, std::int64_t kv_len) {
    Graph graph("attention");
    const auto q = graph.input("q", {batch, heads, q_len, 128}, DType::Float16);
    const auto k = graph.input("k", {batch, kv_heads, kv_len, 128}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {.mask = Mask(seen)}));
    const auto lowered = lowered_by(graph);
    for (const std::vector<fusion::Option>& options : lowered.options) {
      if (options.at(0).kernel.starts_with("attention_")) {
        return options.at(0).kernel;
      }
    }
    return std::string();
  };
  const Expr q = query_position();
  const Expr k = key_position();
  const Expr padded = k < 1000 - 10 * batch_index();
  // Queries of the heads of a key head are rows of one tile, along which causal rows are no band.
  CHECK(chosen(k <= q + 4092, 1, 32, 8, 4, 4096) == "attention_few_queries");
  CHECK(chosen(padded, 64, 32, 32, 1, 1024) == "attention_few_queries");
  CHECK(chosen(padded, 32, 32, 32, 64, 1024) == "attention_block_wise_sm90");
  CHECK(chosen(padded, 32, 32, 32, 65, 1024) == "attention_block_wise_sm90");  // half a tile
  CHECK(chosen(padded, 32, 32, 32, 128, 1024) == kIntervals);
  CHECK(chosen(k < 4000 && q >= 1, 1, 2, 2, 512, 4096) == "attention_block_wise_sm90");
  CHECK(chosen(k < 4000 && q >= 1, 1, 4, 4, 4096, 4096) == "attention_block_wise_sm90");
}

TEST_CASE("what is a band, has gaps or one row that is far longer goes elsewhere") {
  const Expr q = query_position();
  const Expr k = key_position();
  CHECK(tile_q(attention_of(causal(), 32, 2048, 128)) == 0);
  // Every second document is that of the other end.
  const Mask far = Mask(k / 32 == (q / 32 % 2) * 40 + q / 64);
  CHECK(tile_q(attention_of(far, 32, 4096, 128)) == 0);
  const Mask one_long = documents({0, 2048, 2100, 2200, 2300, 2400, 2500, 2600, 2700, 2800, 4096});
  CHECK(tile_q(attention_of(one_long, 32, 4096, 128)) == 128);
  const Mask short_and_long = documents_of(64, 16384) || Mask(q > 16000);
  CHECK(tile_q(attention_of(short_and_long, 32, 16384, 128)) == 0);
  CHECK(tile_q(attention_of(documents_of(700, 4096) && k % 3 != 1, 32, 4096, 128)) == 0);
}
