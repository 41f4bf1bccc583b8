// Which kernel and which setting, for whole graphs on an H200 that is not there.
#include "fusion/choose.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "../../tools/bench/masks.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
#include "render/template_store.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

fusion::Lowered lowered(const Graph& graph, const char* device = "h200",
                        const fusion::Decisions& decisions = {}) {
  static const fusion::TemplateLibrary library =
      fusion::read_templates(render::TemplateStore::open({}).texts());
  return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                       base::shipped_profile(device), {}, decisions);
}

Graph product(std::int64_t m, std::int64_t n, std::int64_t k, WeightLayout layout) {
  Graph graph("product");
  const auto x = graph.input("x", {m, k}, DType::Float16);
  const bool is_out_in = layout == WeightLayout::OutIn;
  const auto w = graph.weight("w", is_out_in ? Shape({n, k}) : Shape({k, n}), DType::Float16,
                              {.layout = layout});
  graph.output("y", graph.linear(x, w));
  return graph;
}

Graph attention(const char* mask, std::int64_t heads, std::int64_t length, std::int64_t head_dim,
                const std::optional<Score>& score = {}) {
  Graph graph("attention");
  const Shape shape({1, heads, length, head_dim});
  const auto q = graph.input("q", shape, DType::Float16);
  const auto k = graph.input("k", shape, DType::Float16);
  const auto v = graph.input("v", shape, DType::Float16);
  graph.output("y", graph.attention(q, k, v, {.mask = bench::mask(mask, length), .score = score}));
  return graph;
}

std::string kernel_of(const Graph& graph, const char* device = "h200") {
  return lowered(graph, device).options.at(0).at(0).kernel;
}

// Of 64 dimensions a head.
Graph attention(const Mask& mask, std::int64_t batch, std::int64_t heads, std::int64_t length) {
  Graph graph("attention");
  const auto q = graph.input("q", {batch, heads, length, 64}, DType::Float16);
  graph.output("y", graph.attention(q, q, q, {.mask = mask}));
  return graph;
}

// In which a band goes through its tiles.
std::int64_t order_of_band(const Mask& mask, std::int64_t batch, std::int64_t heads,
                           std::int64_t length) {
  const fusion::Option option = lowered(attention(mask, batch, heads, length)).options.at(0).at(0);
  CHECK(option.kernel == "attention_band_sm90");
  return option.config.at("order");
}

}  // namespace

TEST_CASE("products go to the kernel that was the fastest on an H200") {
  for (const std::int64_t n : {768, 4096, 11008}) {
    for (const std::int64_t k : {768, 4096}) {
      CHECK(kernel_of(product(1, n, k, WeightLayout::OutIn)) == "vector_rows");
      CHECK(kernel_of(product(4, n, k, WeightLayout::OutIn)) == "vector_rows");
      CHECK(kernel_of(product(4096, n, k, WeightLayout::InOut), "a100") == "gemm_sm80");
    }
  }
  for (const auto& [n, k] : {std::pair(768, 768), std::pair(768, 3072), std::pair(4096, 4096),
                             std::pair(11008, 4096), std::pair(4096, 16384)}) {
    CHECK(kernel_of(product(16, n, k, WeightLayout::OutIn)) == "gemm_few_rows");
  }
  CHECK(kernel_of(product(128, 3072, 768, WeightLayout::OutIn)) == "gemm_sm90");
  CHECK(kernel_of(product(1, 4096, 4096, WeightLayout::InOut)) == "gemm_sm90");
  CHECK(kernel_of(product(4096, 768, 768, WeightLayout::InOut)) == "gemm_sm90");
  CHECK(kernel_of(product(4096, 4096, 4096, WeightLayout::InOut)) == "gemm_tma");
  CHECK(kernel_of(product(32768, 768, 768, WeightLayout::OutIn)) == "gemm_tma");
  CHECK(kernel_of(product(64, 63, 77, WeightLayout::InOut)) == "gemm_simple");
}

TEST_CASE("attention visits rows where few keys of a tile are seen") {
  CHECK(kernel_of(attention("random1", 12, 4096, 64)) == "attention_row_wise_staged");
  CHECK(kernel_of(attention("random1", 2, 4096, 64)) == "attention_row_wise");
  for (const std::string mask : {"causal", "sliding", "longformer", "bigbird", "dilated", "full"}) {
    for (const std::int64_t length : {128, 1024}) {
      INFO(mask, " ", length);
      CHECK(!kernel_of(attention(mask.c_str(), 12, length, 64)).starts_with("attention_row_wise"));
    }
  }
}

TEST_CASE("few queries go to the kernel for them, which shares the keys of a head among blocks") {
  const auto choice = [](std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t q_len) {
    Graph graph("few");
    const auto q = graph.input("q", {batch, heads, q_len, 128}, DType::Float16);
    const auto k = graph.input("k", {batch, kv_heads, 4096, 128}, DType::Float16);
    const auto v = graph.input("v", {batch, kv_heads, 4096, 128}, DType::Float16);
    graph.output("y", graph.attention(q, k, v));
    return lowered(graph, "h200").options.at(0).at(0);
  };
  for (const std::int64_t q_len : {1, 2}) {
    CHECK(choice(1, 32, 4, q_len).kernel == "attention_few_queries");
    CHECK(choice(16, 32, 4, q_len).kernel == "attention_few_queries");
    CHECK(choice(1, 32, 4, q_len).config.at("parts") > choice(16, 32, 4, q_len).config.at("parts"));
    CHECK(choice(1, 8, 8, q_len).kernel == "attention_few_queries");
  }
  CHECK(choice(16, 32, 4, 16).kernel != "attention_few_queries");  // 128 queries of a key head
  CHECK(choice(16, 32, 8, 4).kernel != "attention_band_sm90");     // which memory bounds
}

TEST_CASE("bands go to the kernel for them where rows are short") {
  const std::string band = "attention_band_sm90";
  const std::string block_wise = "attention_block_wise_sm90";
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* const mask : {"causal", "sliding", "full"}) {
      CHECK(kernel_of(attention(mask, 24, 512, head_dim)) == band);
    }
    CHECK(kernel_of(attention("sliding", 12, 4096, head_dim)) == band);
    CHECK(kernel_of(attention("dilated", 12, 4096, head_dim)) == band);
    CHECK(kernel_of(attention("causal", 96, 512, head_dim)) == band);
    CHECK(kernel_of(attention("causal", 96, 4096, head_dim)) == band);
    CHECK(kernel_of(attention("full", 12, 8192, head_dim)) == block_wise);
    CHECK(kernel_of(attention("causal", 12, 1024, head_dim)) == band);
    CHECK(kernel_of(attention("causal", 12, 2048, head_dim)) == band);
    CHECK(kernel_of(attention("causal", 1, 8192, head_dim)) != band);  // few tiles, and long
  }
  CHECK(kernel_of(attention("full", 12, 2048, 64)) == block_wise);
  CHECK(kernel_of(attention("full", 12, 2048, 128)) == block_wise);
  CHECK(kernel_of(attention("sliding", 12, 16384, 64)) == band);
  CHECK(kernel_of(attention("sliding", 12, 16384, 128)) == block_wise);
  CHECK(kernel_of(attention("sliding", 12, 4096, 256)) == block_wise);
  CHECK(kernel_of(attention("sliding", 12, 4096, 64, 5.0 * tanh(score() / 5.0))) == block_wise);
  CHECK(kernel_of(attention("sliding", 12, 4096, 64), "a100") == "attention_block_wise_sm80");
}

TEST_CASE("bands of few keys go to the kernel that has them at once, while it has few blocks") {
  const std::string few = "attention_few_keys";
  const auto window = [](std::int64_t keys, std::int64_t heads,
                         std::int64_t length) {  // of a query
    Graph graph("window");
    const auto q = graph.input("q", {1, heads, length, 64}, DType::Float16);
    graph.output("y", graph.attention(q, q, q, {.mask = causal() && sliding_window(keys - 1, 0)}));
    return graph;
  };
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* const mask : {"causal", "sliding", "full"}) {
      CHECK(kernel_of(attention(mask, 12, 128, head_dim)) == few);
      CHECK(kernel_of(attention(mask, 12, 128, head_dim), "a100") == few);
      CHECK(kernel_of(attention(mask, 50, 128, head_dim)) != few);
    }
  }
  CHECK(kernel_of(attention("full", 1, 1, 64)) == few);
  CHECK(kernel_of(attention("full", 12, 256, 64)) == few);
  CHECK(kernel_of(attention("full", 13, 256, 64)) != few);
  CHECK(kernel_of(attention("full", 8, 257, 64)) != few);
  CHECK(kernel_of(attention("full", 8, 128, 256)) != few);
  CHECK(kernel_of(window(49, 12, 512)) == few);
  CHECK(kernel_of(window(49, 13, 512)) != few);
  CHECK(kernel_of(window(50, 6, 512)) == few);
  CHECK(kernel_of(window(50, 12, 512)) != few);  // 65 of 16 queries
  CHECK(kernel_of(window(241, 4, 512)) == few);
  CHECK(kernel_of(window(242, 4, 512)) != few);
}

TEST_CASE("short heads, about as many as SMs, go to the kernel that holds all of their keys") {
  const auto pieces = [](const char* mask, std::int64_t heads, std::int64_t length,
                         std::int64_t head_dim = 64, const char* gpu = "h200") {
    const Graph graph = attention(mask, heads, length, head_dim);
    const fusion::Option option = lowered(graph, gpu).options.at(0).at(0);
    return option.kernel == "attention_held_sm90" ? option.config.at("pieces") : 0;
  };
  for (const char* const mask : {"causal", "full"}) {
    CHECK(pieces(mask, 132, 512) == 1);
    CHECK(pieces(mask, 133, 512) == 0);
    CHECK(pieces(mask, 113, 512) == 1);
    CHECK(pieces(mask, 66, 512) == 2);
    CHECK(pieces(mask, 67, 512) == 0);
    CHECK(pieces(mask, 57, 512) == 2);
    CHECK(pieces(mask, 33, 512) == 0);
    CHECK(pieces(mask, 86, 256) == 1);
    CHECK(pieces(mask, 85, 256) == 0);
    CHECK(pieces(mask, 128, 512, 128) == 0);
    CHECK(pieces(mask, 128, 512, 64, "a100") == 0);
  }
  CHECK(pieces("full", 86, 512) == 1);
  CHECK(pieces("causal", 112, 512) == 0);
  // Whose warp groups or blocks have as much to do one as the other.
  CHECK(pieces("causal", 128, 576) == 1);
  CHECK(pieces("full", 128, 576) == 0);
  CHECK(pieces("causal", 128, 384) == 1);
  CHECK(pieces("causal", 64, 384) == 0);
  CHECK(pieces("causal", 128, 640) == 0);  // no room
  CHECK(pieces("causal", 128, 192) == 0);
  CHECK(pieces("sliding", 128, 512) == 0);
}

TEST_CASE("batch elements of short causal heads go side by side") {
  const auto is_side_by_side = [](const Mask& mask, std::int64_t batch, std::int64_t heads,
                                  std::int64_t length) {
    return order_of_band(mask, batch, heads, length) == 1;
  };
  CHECK(is_side_by_side(causal(), 16, 12, 512));
  CHECK(is_side_by_side(causal(), 16, 12, 2048));
  CHECK_FALSE(is_side_by_side(causal(), 16, 12, 4096));
  CHECK_FALSE(is_side_by_side(causal(), 1, 12, 1024));
  CHECK_FALSE(is_side_by_side(Mask(), 16, 12, 512));
  CHECK_FALSE(is_side_by_side(sliding_window(22, 22), 16, 12, 512));
}

TEST_CASE("large grids of wide heads of 128 queries and keys go to lists, a tile each") {
  // On an H200 71.7 us with 2048 heads, and 37.9 with half as many, where the band takes 78.9
  // and 41.3.
  const fusion::Option tiles = lowered(attention("causal", 1024, 128, 128)).options.at(0).at(0);
  CHECK(tiles.kernel == "attention_block_wise_sm90");
  CHECK(tiles.config.at("tile_q") == 128);
  CHECK(tiles.config.at("tile_k") == 128);
  const std::string band = "attention_band_sm90";
  CHECK(kernel_of(attention("causal", 256, 128, 128)) == band);
  CHECK(kernel_of(attention("causal", 1024, 64, 128)) == band);
  CHECK(kernel_of(attention("causal", 1024, 128, 64)) == band);
}

TEST_CASE("even rows whose blocks would leave too much of a last wave empty go to lists") {
  // Three blocks an SM are 396 at once. Of the 1024 of 64 heads lists take 42.4 us on an H200, the
  // band 46.4; of the 512 of four heads 26.0 and 31.3.
  const std::string band = "attention_band_sm90";
  const std::string lists = "attention_block_wise_sm90";
  CHECK(kernel_of(attention("full", 48, 1024, 64)) == band);
  CHECK(kernel_of(attention("full", 64, 1024, 64)) == lists);
  CHECK(kernel_of(attention(sliding_window(1023, 0), 1, 4, 8192)) == lists);
  CHECK(kernel_of(attention(sliding_window(1023, 0), 1, 6, 8192)) == band);
}

TEST_CASE("few query tiles along a band have an SM each, share it with one more, or go to lists") {
  const auto blocks_per_sm = [](const char* mask, std::int64_t heads, std::int64_t length,
                                std::int64_t head_dim = 64) {
    const Graph graph = attention(mask, heads, length, head_dim);
    const fusion::Option option = lowered(graph).options.at(0).at(0);
    return option.kernel == "attention_band_sm90" ? option.config.at("blocks_per_sm") : 0;
  };
  // Of 132 SMs: rows that are as long as each other.
  CHECK(blocks_per_sm("full", 4, 2048) == 1);
  CHECK(blocks_per_sm("full", 8, 512) == 2);
  CHECK(blocks_per_sm("full", 8, 2048) == 2);
  CHECK(blocks_per_sm("full", 12, 2048) == 0);
  CHECK(blocks_per_sm("full", 4, 2048, 128) == 1);
  CHECK(blocks_per_sm("full", 8, 2048, 128) == 0);
  CHECK(blocks_per_sm("window", 2, 4096) == 1);
  CHECK(blocks_per_sm("window", 4, 4096) == 2);
  // Fewer tiles, and long: lists cut them in parts.
  CHECK(blocks_per_sm("full", 1, 4096) == 0);
  CHECK(blocks_per_sm("full", 1, 4096, 128) == 0);
  CHECK(blocks_per_sm("full", 4, 1024) == 1);
  // Rows of a causal mask.
  CHECK(blocks_per_sm("causal", 2, 2048) == 1);
  CHECK(blocks_per_sm("causal", 1, 8192) == 0);
  CHECK(blocks_per_sm("causal", 6, 4096) == 2);
  CHECK(blocks_per_sm("causal", 8, 2048, 128) == 1);
  CHECK(blocks_per_sm("causal", 32, 512, 128) == 2);
}

TEST_CASE("causal blocks that are all on an SM at once lie in pairs, a long one with a short one") {
  const auto is_paired = [](const Mask& mask, std::int64_t batch, std::int64_t heads,
                            std::int64_t length) {
    return order_of_band(mask, batch, heads, length) == 2;
  };
  CHECK(is_paired(causal(), 1, 12, 1024));
  CHECK(is_paired(causal(), 2, 8, 1024));
  CHECK(is_paired(causal(), 1, 33, 512));  // two to each of 132 SMs
  CHECK_FALSE(is_paired(causal(), 1, 34, 512));
  CHECK_FALSE(is_paired(causal(), 1, 16, 512));  // one
  CHECK_FALSE(is_paired(Mask(), 1, 12, 1024));
  // Whose first rows are the longest, while those of the last queries come first.
  CHECK_FALSE(is_paired(key_position() >= query_position(), 1, 12, 1024));
}

TEST_CASE("windows of wide heads that are long, in large grids, go to the kernel with lists") {
  const auto choice = [](std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
    return lowered(attention("window", heads, length, head_dim)).options.at(0).at(0);
  };
  const fusion::Option large = choice(32, 16384, 128);
  CHECK(large.kernel == "attention_block_wise_sm90");
  CHECK(large.config.at("tile_q") == 128);
  CHECK(large.config.at("tile_k") == 128);
  CHECK(large.config.at("overlap") == 1);
  CHECK(choice(32, 4096, 128).kernel == "attention_band_sm90");
  CHECK(choice(32, 16384, 64).kernel == "attention_band_sm90");
  // Scores that are modified take registers, which as large tiles do not leave.
  const Graph modified = attention("window", 32, 16384, 128, 5.0 * tanh(score() / 5.0));
  CHECK(lowered(modified).options.at(0).at(0).config.at("tile_q") == 64);
}

TEST_CASE("lists have as many blocks an SM, and as large tiles, as were the fastest on an H200") {
  const auto config = [](const char* mask, std::int64_t heads, std::int64_t length,
                         std::int64_t head_dim) {
    return lowered(attention(mask, heads, length, head_dim)).options.at(0).at(0).config;
  };
  CHECK(config("longformer", 12, 4096, 64).at("blocks_per_sm") == 4);
  CHECK(config("longformer", 12, 4096, 64).at("slots") == 3);
  // Two and three blocks an SM are within 2 % of each other there, one and larger tiles are not.
  for (const char* const mask : {"longformer", "bigbird_block"}) {
    CHECK(config(mask, 32, 8192, 128).at("blocks_per_sm") >= 2);
    CHECK(config(mask, 32, 8192, 128).at("tile_q") == 64);
  }
  CHECK(config("longformer", 32, 2048, 256).at("tile_q") == 64);
  for (const auto& [mask, length] : {std::pair("full", 8192), std::pair("causal", 16384)}) {
    CHECK(config(mask, 32, length, 128).at("tile_q") == 192);
    CHECK(config(mask, 32, length, 128).at("tile_k") == 128);
  }
}

TEST_CASE("tiles that are packed in vain are taken as they are") {
  const std::vector<fusion::Option> options =
      lowered(attention("longformer", 12, 16384, 64)).options.at(0);
  CHECK(options.at(0).kernel == "attention_block_wise_sm90");
  CHECK(options.at(1).kernel == "attention_packed_sm90");
  CHECK(options.at(0).config == options.at(1).config);
}

TEST_CASE("all keys of a tile that fit registers are as few groups of 16 as hold them") {
  const auto keys = [](std::int64_t length) {
    return lowered(attention("sliding", 192, length, 64)).options.at(0).at(0).config.at("tile_k");
  };
  CHECK(keys(128) == 96);    // 11 to each side of 64 queries
  CHECK(keys(512) == 112);   // 22
  CHECK(keys(1024) == 128);  // 32
}

TEST_CASE("windows of many query tiles go to the kernel that walks along them") {
  const std::string window = "attention_window_sm90";
  const std::string band = "attention_band_sm90";
  for (const char* const mask : {"sliding", "dilated"}) {
    for (const std::int64_t length : {2048, 4096}) {
      CHECK(kernel_of(attention(mask, 192, length, 64)) == window);
    }
    CHECK(kernel_of(attention(mask, 192, 512, 64)) == band);
    CHECK(kernel_of(attention(mask, 600, 512, 64)) == window);
    CHECK(kernel_of(attention(mask, 192, 4096, 128)) != window);
  }
  CHECK(kernel_of(attention("causal", 192, 4096, 64)) == band);
  CHECK(kernel_of(attention("sliding", 48, 16384, 64)) == band);  // 320 keys at once
  CHECK(kernel_of(attention("sliding", 192, 4096, 64, 5.0 * tanh(score() / 5.0))) ==
        "attention_block_wise_sm90");
}

TEST_CASE("windows with global tokens have an SM for each block where these are few") {
  const std::string resident = "attention_resident_sm90";
  for (const char* const mask : {"longformer", "bigbird"}) {
    CHECK(kernel_of(attention(mask, 12, 1024, 64)) == resident);
    CHECK(kernel_of(attention(mask, 24, 1024, 64)) != resident);
    CHECK(kernel_of(attention(mask, 12, 4096, 64)) != resident);
    CHECK(kernel_of(attention(mask, 12, 1024, 128)) != resident);
    CHECK(kernel_of(attention(mask, 12, 128, 64)) != resident);
  }
}

TEST_CASE("windows with global tokens go to the kernel for them where they are long and many") {
  const std::string global_local = "attention_global_local_sm90";
  for (const char* const mask : {"longformer", "bigbird"}) {
    for (const std::int64_t length : {2048, 4096}) {
      CHECK(kernel_of(attention(mask, 192, length, 64)) == global_local);
    }
    CHECK(kernel_of(attention(mask, 12, 4096, 64)) != global_local);
    CHECK(kernel_of(attention(mask, 192, 512, 64)) == "attention_packed_sm90");
    CHECK(kernel_of(attention(mask, 192, 4096, 128)) != global_local);
    CHECK(kernel_of(attention(mask, 192, 4096, 64, 5.0 * tanh(score() / 5.0))) != global_local);
  }
  CHECK(kernel_of(attention("longformer", 48, 16384, 64)) != global_local);  // 320 keys at once
  CHECK(kernel_of(attention("bigbird_block", 192, 4096, 64)) != global_local);
}

TEST_CASE("whatever a template takes of windows with global tokens, it is for these alone") {
  contract::TemplateContract contract;
  contract.launch.arguments = {{.kind = contract::ArgumentKind::Mask, .name = "order"}};
  contract.scalars_read = {"dim.global_heads", "mask.long_tiles"};
  CHECK_FALSE(fusion::takes_global_tokens(contract));
  contract.scalars_read.insert("mask.global_tiles");
  CHECK(fusion::takes_global_tokens(contract));
  contract.scalars_read = {};
  contract.launch.arguments[0].name = "local_bits";
  CHECK(fusion::takes_global_tokens(contract));
}

TEST_CASE("clusters lie in a GPC, and not all SMs may have a block") {
  // Of 132 SMs 128 hold clusters of four.
  const std::string resident = "attention_resident_sm90";
  CHECK(kernel_of(attention("longformer", 10, 1024, 64)) == resident);
  CHECK(kernel_of(attention("longformer", 12, 1024, 64)) == resident);  // in blocks of three tiles
  CHECK(kernel_of(attention("longformer", 13, 1024, 64)) != resident);
  // Lists are slower there, whatever the model says of so little work.
  CHECK(kernel_of(attention("longformer", 5, 1024, 64)) == resident);
  CHECK(kernel_of(attention("longformer", 12, 512, 64)) == resident);
  CHECK(kernel_of(attention("bigbird", 4, 1024, 64)) == resident);
}

// The kernels that are thought of for an attention, where one of the templates has other words.
std::vector<fusion::Option> options_with(
    const std::string& file, const std::string& as,
    std::initializer_list<std::pair<std::string, std::string>> words, const Graph& graph) {
  auto texts = render::TemplateStore::open({}).texts();
  std::string text = texts.at(file);
  for (const auto& [from, to] : words) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  texts[as] = text;
  const fusion::TemplateLibrary library = fusion::read_templates(texts);
  return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                       base::shipped_profile("h200"), {}, {})
      .options.at(0);
}

TEST_CASE("kernels of a user's may have parameters of their own") {
  for (const char* const mask : {"sliding", "causal"}) {
    const auto options = options_with("attention/band_sm90.jinja", "attention/mine.jinja",
                                      {{"key_groups", "turns"}, {"_band_sm90\"", "_mine\""}},
                                      attention(mask, 12, 4096, 64));
    CHECK(std::ranges::any_of(options, [](const fusion::Option& option) {
      return option.kernel == "attention_mine" && option.config.contains("turns");
    }));
  }
  // Or parameters that are called as those of the library's.
  const auto few =
      options_with("attention/few_keys.jinja", "attention/mine.jinja",
                   {{"_few_keys\"", "_mine\""},
                    {"\"values\": [4, 8], \"default\": 4", "\"values\": [8], \"default\": 8"}},
                   attention("causal", 12, 128, 128));
  CHECK(std::ranges::any_of(few, [](const fusion::Option& option) {
    return option.kernel == "attention_mine" && option.config.at("warps") == 8;
  }));
  // Under the name of the library's, too.
  for (const char* const kernel : {"resident_sm90", "global_local_sm90"}) {
    const std::string file = "attention/" + std::string(kernel) + ".jinja";
    const auto options = options_with(file, file,
                                      {{"param.global_", "param.my_"},
                                       {"\"global_boxes\"", "\"my_boxes\""},
                                       {"\"global_keys\"", "\"my_keys\""},
                                       {"\"global_tiles\"", "\"my_tiles\""}},
                                      attention("longformer", 12, 1024, 64));
    CHECK(std::ranges::any_of(options, [&](const fusion::Option& option) {
      return option.kernel == "attention_" + std::string(kernel) &&
             (option.config.contains("my_boxes") || option.config.contains("my_keys"));
    }));
  }
  // Without the setting that a long window would go to lists for, it stays with the kernel for
  // bands.
  const std::string lists = "attention/block_wise_sm90.jinja";
  CHECK(options_with(lists, lists, {{"param.slots", "param.places"}, {"\"slots\"", "\"places\""}},
                     attention("window", 32, 16384, 128))
            .at(0)
            .kernel == "attention_band_sm90");
}

TEST_CASE("steps of a band leave no stage that holds all keys") {
  const Graph graph = attention("sliding", 12, 128, 64);
  const std::string problem = fusion::problem_key(lowered(graph).origins.at(0).problem);
  const auto refusal = [&](std::int64_t tile_k, std::int64_t step) {
    const fusion::Setting setting{.kernel = "attention_band_sm90",
                                  .config = {{"tile_q", 128},
                                             {"tile_k", tile_k},
                                             {"step", step},
                                             {"key_groups", 1},
                                             {"stages", 1},
                                             {"blocks_per_sm", 1},
                                             {"overlap", 0},
                                             {"order", 0}}};
    return lowered(graph, "h200", {.scheme = {}, .settings = {{problem, setting}}})
        .origins.at(0)
        .refusal;
  };
  CHECK(refusal(160, 160).empty());
  CHECK(refusal(192, 96).empty());
  CHECK(refusal(160, 96).starts_with("attention_band_sm90 does not allow"));  // to key 191 of 160
  CHECK(refusal(160, 80).starts_with(
      "attention_band_sm90 does not allow"));  // groups of 16 are for one step
}

TEST_CASE("masks that leave much of their tiles empty are packed") {
  const std::string packed = "attention_packed_sm90";
  const std::string block_wise = "attention_block_wise_sm90";
  for (const char* const mask : {"longformer", "bigbird"}) {
    CHECK(kernel_of(attention(mask, 192, 512, 64)) == packed);
    CHECK(kernel_of(attention(mask, 24, 1024, 64)) == packed);
  }
  CHECK(kernel_of(attention("longformer", 32, 8192, 128)) == packed);
  CHECK(kernel_of(attention("bigbird_block", 12, 4096, 64)) == block_wise);  // it packs nothing
  CHECK(kernel_of(attention("full", 12, 8192, 64)) == block_wise);
  CHECK(kernel_of(attention("longformer", 12, 1024, 64, 5.0 * tanh(score() / 5.0))) == block_wise);
}

TEST_CASE("what was not chosen is told, with its time") {
  const fusion::Lowered result = lowered(product(4096, 3072, 768, WeightLayout::OutIn));
  REQUIRE(result.options.size() == result.program.launches.size());
  const std::vector<fusion::Option>& options = result.options.at(0);
  REQUIRE(options.size() >= 3);
  CHECK(options[0].text().starts_with("gemm_tma, group_m 8, stages "));
  for (std::size_t i = 1; i < options.size(); ++i) {
    CHECK(options[i].time.total_us() >= options[0].time.total_us());
  }
  CHECK(result.specs.at(0).variables.at("param") == nlohmann::json(options[0].config));
}

TEST_CASE("equal layers have equal kernels") {
  const auto layers = [](int count) {
    Graph graph("layers");
    Tensor x = graph.input("x", {512, 768}, DType::Float16);
    for (int i = 0; i < count; ++i) {
      const auto w = graph.weight("w" + std::to_string(i), {768, 768}, DType::Float16);
      x = graph.linear(x, w);
    }
    graph.output("y", x);
    return graph;
  };
  const fusion::Lowered many = lowered(layers(40));
  CHECK(many.options.size() == 40);
  CHECK(many.specs.size() == 1);
}
