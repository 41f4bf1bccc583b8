// Which setting lists of wide heads have along a band, on an H200 that is not there.
#include "fusion/wide_lists.hpp"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "fusion/choice_testing.hpp"
#include "fusion/decisions.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

TEST_CASE("wide heads of 128 queries and keys go to lists, a tile each, where they are many") {
  // On an H200 36.3 us with 1024 heads and 20.5 with 512, where the band takes 41.3 and 22.9.
  const fusion::Option tiles = lowered_by(attention("causal", 512, 128, 128)).options.at(0).at(0);
  CHECK(tiles.kernel == "attention_block_wise_sm90");
  CHECK(tiles.config.at("tile_q") == 128);
  CHECK(tiles.config.at("tile_k") == 64);
  const std::string band = "attention_band_sm90";
  const std::string lists = "attention_block_wise_sm90";
  CHECK(kernel_of(attention("full", 256, 128, 128)) == lists);    // 13.6 us, and 15.7
  CHECK(kernel_of(attention("full", 192, 128, 128)) == lists);    // 12.9 and 13.5
  CHECK(kernel_of(attention("full", 160, 128, 128)) == lists);    // 13.8 and 14.1, on an H100
  CHECK(kernel_of(attention("full", 144, 128, 128)) == band);     // 13.2 and 12.8, the same
  CHECK(kernel_of(attention("causal", 256, 128, 128)) == lists);  // 14.9 and 15.8
  CHECK(kernel_of(attention("causal", 192, 128, 128)) == band);   // 14.0 and 13.6
  CHECK(kernel_of(attention("sliding", 256, 128, 128)) == band);  // 14.8 and 14.0
  CHECK(kernel_of(attention("causal", 1024, 64, 128)) == band);
  CHECK(kernel_of(attention("causal", 1024, 128, 64)) == band);
  // Where no kernel for bands is beside them, heads of fewer than six tiles an SM are the model's.
  const auto with_lengths = [](std::int64_t heads) {
    Graph graph("lengths");
    const auto q = graph.input("q", {2, heads / 2, 128, 128}, DType::Float16);
    const auto lengths = graph.input("lengths", {2}, DType::Int32);
    graph.output("y", graph.attention(q, q, q, {.mask = causal(), .kv_lengths = lengths}));
    return lowered_by(graph).options.at(0).at(0);
  };
  CHECK(with_lengths(400).kernel == lists);
  CHECK(with_lengths(400).config.at("slots") == 4);
  CHECK(with_lengths(256).config != with_lengths(400).config);
}

TEST_CASE(
    "many tiles of wide heads that see all go to lists, where their waves leave fewer places") {
  const auto rows_of_lists = [](const char* mask, std::int64_t heads, std::int64_t length,
                                std::int64_t head_dim) {
    const fusion::Option option =
        lowered_by(attention(mask, heads, length, head_dim)).options.at(0).at(0);
    return option.kernel == "attention_block_wise_sm90" ? option.config.at("tile_q") : 0;
  };
  const auto has_lists = [&](const char* mask, std::int64_t heads, std::int64_t length,
                             std::int64_t head_dim) {
    return rows_of_lists(mask, heads, length, head_dim) > 0;
  };
  // On an H200, in microseconds, and with bands.
  CHECK(has_lists("full", 128, 384, 128));  // 27.3 and 30.9
  CHECK(has_lists("full", 32, 4096, 128));  // 397 and 414
  CHECK(has_lists("full", 32, 2048, 96));   // 97 and 103
  CHECK(has_lists("full", 192, 256, 80));   // 18.5 and 21.0
  CHECK(has_lists("full", 128, 1025, 96));
  CHECK(has_lists("full", 256, 320, 128));   // 41.3 and 41.7
  CHECK(has_lists("full", 64, 2048, 72));    // 193 and 214, as TMA is slow with such rows
  CHECK(has_lists("full", 1536, 150, 112));  // 67 and 81
  CHECK(has_lists("full", 512, 130, 96));
  CHECK_FALSE(has_lists("full", 64, 150, 112));
  // On an H100, with keys of whole heads at once: 20.3 and 24.3, 35.6 and 40.0; but 18.2 and 16.5.
  CHECK(rows_of_lists("full", 384, 160, 80) == 192);
  CHECK(rows_of_lists("full", 480, 192, 128) == 192);
  CHECK_FALSE(has_lists("full", 160, 160, 128));
  // And with bands.
  CHECK(rows_of_lists("full", 512, 320, 80) == 192);     // 52.9 and 62.6
  CHECK(rows_of_lists("full", 256, 320, 96) == 192);     // 33.3 and 37.2
  CHECK(rows_of_lists("full", 192, 256, 96) == 128);     // 20.4 and 22.9
  CHECK(rows_of_lists("full", 128, 1024, 80) == 128);    // 99.7 and 102.1
  CHECK(rows_of_lists("full", 16, 2304, 128) == 192);    // 84.0 and 104.8
  CHECK(rows_of_lists("causal", 224, 1025, 88) == 192);  // 148 and 186
  CHECK_FALSE(has_lists("causal", 144, 600, 120));       // 55.8 and 51.9
  CHECK_FALSE(has_lists("causal", 64, 400, 104));        // 23.9 and 21.3
  CHECK_FALSE(has_lists("causal", 96, 1024, 80));        // 59.8 and 49.2
  // Of more queries than heads that go one after the other may have.
  const auto option_of = [](std::int64_t q_len) {
    Graph graph("attention");
    const auto q = graph.input("q", {1, 264, q_len, 128}, DType::Float16);
    const auto k = graph.input("k", {1, 264, 256, 128}, DType::Float16);
    const auto v = graph.input("v", {1, 264, 256, 128}, DType::Float16);
    graph.output("o", graph.attention(q, k, v, {}));
    return lowered_by(graph).options.at(0).at(0);
  };
  CHECK(option_of(512).config.at("tile_k") == 128);
  CHECK(option_of(256).kernel == "attention_short_heads_sm90");
  CHECK(has_lists("full", 192, 512, 80));        // 45.3 and 46.7
  CHECK_FALSE(has_lists("full", 64, 512, 128));  // 23.3 and 22.1
  CHECK_FALSE(has_lists("causal", 128, 512, 128));
}

// On an H200, in microseconds, with the lists and without them or with the others.
TEST_CASE("wide heads whose tiles are long, single or few have lists as their waves are filled") {
  const auto lists = [](std::int64_t heads, std::int64_t q_len, std::int64_t kv_len,
                        std::int64_t head_dim, bool has_lengths = false) -> std::string {
    Graph graph("attention");
    const auto q = graph.input("q", {1, heads, q_len, head_dim}, DType::Float16);
    const auto k = graph.input("k", {1, heads, kv_len, head_dim}, DType::Float16);
    AttentionOptions options;
    if (has_lengths) {
      options.kv_lengths = graph.input("lengths", {1}, DType::Int32);
    }
    graph.output("o", graph.attention(q, k, k, options));
    const fusion::Option option = lowered_by(graph).options.at(0).at(0);
    if (option.kernel != "attention_block_wise_sm90") {
      return option.kernel;
    }
    return std::to_string(option.config.at("tile_q")) + "x" +
           std::to_string(option.config.at("tile_k")) + ":" +
           std::to_string(option.config.at("slots"));
  };
  const std::string band = "attention_band_sm90";
  const std::string held = "attention_short_heads_sm90";
  // More than 4096 keys.
  CHECK(lists(8, 6000, 6000, 128) == "192x64:6");   // 208 and 287
  CHECK(lists(12, 7000, 7000, 104) == "192x64:6");  // 448 and 509
  CHECK(lists(12, 4500, 4500, 128) == band);        // 222 and 244
  CHECK(lists(20, 8192, 8192, 80) == "192x128:3");  // 772 and 808
  CHECK(lists(10, 4500, 4500, 72) == "192x128:3");  // 149 and 202
  // A tile of 128 queries a head, or for each SM.
  CHECK(lists(288, 72, 1500, 128) == "128x128:4");  // 74 and 91
  CHECK(lists(396, 128, 257, 128) == "128x64:8");   // 24.8 and 30.3
  CHECK(lists(256, 65, 257, 80) == band);           // 14.8 and 15.6
  CHECK(lists(8, 1500, 1500, 128) == "128x64:8");   // 25.7 and 32.5
  CHECK(lists(8, 1500, 1500, 80) == "128x128:4");   // 25.6 and 27.7
  CHECK(lists(16, 640, 640, 96) == band);           // 14.2 and 14.8
  CHECK(lists(14, 1280, 1280, 128) == "192x64:6");  // 29.2 and 34.9
  // Short heads of three tiles and a half.
  CHECK(lists(224, 224, 224, 128) == "128x64:8");   // 24.5 and 25.7
  CHECK(lists(400, 208, 208, 128) == "128x128:4");  // 35.6 and 36.3
  CHECK(lists(350, 256, 256, 120) == held);         // 36.1 and 39.3
  // More than 192 dimensions.
  CHECK(lists(160, 320, 320, 256) == "64x64:4");   // 48.0 and 52.6
  CHECK(lists(240, 384, 384, 256) == "128x64:4");  // 83.5 and 86.8
  CHECK(lists(336, 320, 320, 240) == "128x64:4");  // 93.5 and 104
  CHECK(lists(160, 100, 800, 224) == "128x64:4");  // 49.0 and 60.6
  CHECK(lists(256, 192, 192, 256) == "64x64:4");   // 39.3 and 44.1
  // What was not timed, or is slower: two waves of tiles of 128, heads of three tiles that are not
  // full, few queries, lengths of keys.
  CHECK(lists(88, 140, 1500, 128) != "128x64:8");
  CHECK(lists(17, 900, 900, 128) != "128x64:8");
  CHECK(lists(140, 130, 224, 128) != "128x64:8");
  CHECK(lists(400, 190, 200, 128) != "128x128:4");
  CHECK(lists(288, 72, 4100, 128) != "128x128:4");
  CHECK(lists(256, 1, 1024, 256) == "attention_few_queries");
  CHECK(lists(8, 6000, 6000, 128, true) != "192x64:6");
}
