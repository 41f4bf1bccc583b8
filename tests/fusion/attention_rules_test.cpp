// Which kinds of kernels are thought of for an attention, on an H200 that is not there.
#include "fusion/attention_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "contract/evaluate.hpp"
#include "fusion/choice_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

namespace {

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

}  // namespace

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
  const auto few_bits = options_with(
      "attention/few_keys_bits.jinja", "attention/mine.jinja",
      {{"_few_keys_bits\"", "_mine\""}, {"param.pieces", "param.mine"}, {"\"pieces\"", "\"mine\""}},
      attention("random1", 12, 256, 96));
  CHECK(std::ranges::any_of(few_bits, [](const fusion::Option& option) {
    return option.kernel == "attention_mine" && option.config.contains("mine");
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
  // What takes no bitmaps of all tiles may have any name, and other masks than these do.
  Graph data("data");
  const auto any = data.input("q", {1, 4, 128, 64}, DType::Float16);
  const MaskInput keep =
      data.mask_input("keep", {1, 1, 128, 128}, {.form = MaskForm::Dense, .max_part_tiles = 4});
  data.output("y", data.attention(any, any, any, {.mask_input = keep}));
  const auto of_rows = options_with("attention/row_wise.jinja", "attention/few_keys_bits.jinja",
                                    {{"\"attention_row_wise\"", "\"attention_few_keys_bits\""},
                                     {"param.warps_per_row", "param.pieces"},
                                     {"\"warps_per_row\"", "\"pieces\""},
                                     {R"(,
    "loads": {"values": [4, 2], "default": 4},
    "warps_per_sm": {"values": [24, 32, 16], "default": 24} })",
                                      " }"},
                                     {"param.loads", "4"},
                                     {"param.warps_per_sm", "24"}},
                                    data);
  CHECK(std::ranges::any_of(of_rows, [](const fusion::Option& option) {
    return option.kernel == "attention_few_keys_bits";
  }));
  Graph graph("few");
  const auto input = [&](const char* name, std::int64_t length) {
    return graph.input(name, {1, 8, length, 64}, DType::Float16);
  };
  const Tensor q = input("q", 1);
  const Tensor k = input("k", 4096);
  graph.output("y", graph.attention(q, k, input("v", 4096)));
  const std::string queries = "attention/few_queries.jinja";
  const auto of_few =
      options_with(queries, queries,
                   {{"param.cluster", "param.mine"}, {"\"cluster\": {", "\"mine\": {"}}, graph);
  CHECK(std::ranges::any_of(of_few, [](const fusion::Option& option) {
    return option.kernel == "attention_few_queries" && option.config.contains("mine");
  }));
  // Without the setting that heads of a tile would go to lists for, they stay with the kernel for
  // bands.
  const Graph tiles = attention("causal", 512, 128, 128);
  CHECK(kernel_of(tiles) == "attention_block_wise_sm90");
  const std::string lists = "attention/block_wise_sm90.jinja";
  CHECK(options_with(lists, lists, {{"param.slots", "param.places"}, {"\"slots\"", "\"places\""}},
                     tiles)
            .at(0)
            .kernel == "attention_band_sm90");
}

TEST_CASE("a bitmap of every tile is made for up to 65536 tiles") {
  const auto takes = [](std::int64_t length) {
    const auto options = options_with("attention/few_keys_bits.jinja", "attention/mine.jinja",
                                      {{"_few_keys_bits\"", "_mine\""},
                                       {"param.pieces", "param.mine"},
                                       {"\"pieces\"", "\"mine\""},
                                       {"dim.kv_len <= 16 * param.warps * param.mine", "true"}},
                                      attention("causal", 1, length, 64));
    return std::ranges::any_of(
        options, [](const fusion::Option& option) { return option.kernel == "attention_mine"; });
  };
  CHECK(takes(16384));
  CHECK_FALSE(takes(16385));
}

TEST_CASE("keys of windows, which lie side by side, are not gathered from stages") {
  const std::string staged = "attention_row_wise_staged";
  const auto window = [](std::int64_t keys, std::int64_t head_dim) {  // of a query
    Graph graph("window");
    const auto q = graph.input("q", {3, 40, 128, head_dim}, DType::Float16);
    const auto k = graph.input("k", {3, 5, 128, head_dim}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {.mask = causal() && sliding_window(keys - 1, 0)}));
    return graph;
  };
  CHECK(kernel_of(window(23, 256)) != staged);
  CHECK(kernel_of(window(2, 256)) == staged);  // what follows was not timed either
  CHECK(kernel_of(window(17, 256), "a100") == staged);
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

TEST_CASE("lists go along heads in sections whose keys L2 holds, or of a wave of blocks") {
  // Half of an H200's holds keys and values of 60 heads; its kernels take both numbers last.
  const auto sections = [](const Graph& graph) {
    const fusion::Lowered lowered = lowered_by(graph);
    const std::string& file = lowered.specs.at(0).file;
    REQUIRE(file == "attention/block_wise_sm90.jinja");
    const auto kernel = std::ranges::find(shipped_templates(), file, &fusion::KernelTemplate::file);
    const auto scalars = contract::scalar_arguments(kernel->contract, lowered.scopes.at(0));
    return std::pair(std::get<std::int64_t>(scalars.at(scalars.size() - 2)),
                     std::get<std::int64_t>(scalars.back()));
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  CHECK(sections(attention("bigbird_block", 60, 2048, 64)) == Pair{60, 60});
  CHECK(sections(attention("bigbird_block", 61, 2048, 64)) == Pair{31, 30});
  CHECK(sections(attention("bigbird_block", 64, 2048, 64)) == Pair{32, 32});
  CHECK(sections(attention("bigbird_block", 192, 2048, 64)) == Pair{48, 48});
  // Four tiles of 128 queries a head, a wave at a time; two waves at the end of uneven ones.
  CHECK(sections(attention("full", 1024, 512, 192)) == Pair{33, 1});
  CHECK(sections(attention("causal", 1024, 512, 192)) == Pair{33, 67});
}

TEST_CASE(
    "lists have no tiles of which half can only be empty, and long rows of few tiles in parts") {
  const auto lowered = [](std::int64_t batch, std::int64_t heads, std::int64_t q_len,
                          std::int64_t kv_len, std::int64_t head_dim) {
    Graph graph("attention");
    const auto f16 = DType::Float16;
    const auto q = graph.input("q", {batch, heads, q_len, head_dim}, f16);
    const auto k = graph.input("k", {batch, heads, kv_len, head_dim}, f16);
    const auto v = graph.input("v", {batch, heads, kv_len, head_dim}, f16);
    graph.output("o", graph.attention(q, k, v, {}));
    return lowered_by(graph);
  };
  const fusion::Lowered wide = lowered(1, 66, 64, 2048, 256);
  CHECK(wide.options.at(0).at(0).kernel == "attention_block_wise_sm90");
  CHECK(wide.options.at(0).at(0).config.at("tile_q") == 64);
  CHECK(wide.scopes.at(0).mask_parts == 2);
  CHECK(wide.specs.at(0).variables["mask"]["has_long_tiles"] == true);
  const fusion::Lowered many = lowered(64, 32, 32, 1024, 64);
  CHECK(many.options.at(0).at(0).config.at("tile_q") == 64);
  CHECK(many.specs.at(0).variables["mask"]["has_long_tiles"] == false);
  // 222 us when eight SMs had it all, and 56.
  CHECK(lowered(4, 2, 32, 16384, 256).scopes.at(0).mask_parts == 16);
  // 186 us with three blocks on an SM, and 164.
  CHECK(lowered(16, 40, 32, 2048, 128).options.at(0).at(0).config.at("blocks_per_sm") == 1);
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
