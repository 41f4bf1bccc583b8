// Which kernel along a band, and which setting, on an H200 that is not there.
#include "fusion/band_rules.hpp"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "fusion/choice_testing.hpp"
#include "fusion/decisions.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

namespace {

// How the band kernel works on a mask.
kernel::KernelConfig config_of(const Graph& graph) {
  const fusion::Option option = lowered_by(graph).options.at(0).at(0);
  CHECK(option.kernel == "attention_band_sm90");
  return option.config;
}
kernel::KernelConfig config_of(const char* mask, std::int64_t heads, std::int64_t length,
                               std::int64_t head_dim) {
  return config_of(attention(mask, heads, length, head_dim));
}

// In which a band goes through its tiles.
std::int64_t order_of_band(const Mask& mask, std::int64_t batch, std::int64_t heads,
                           std::int64_t length) {
  return config_of(attention(mask, batch, heads, length)).at("order");
}

// Whether its tiles of a head lie side by side.
bool is_in_turn(const char* mask, std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
  return config_of(mask, heads, length, head_dim).at("order") == 3;
}

// Why a kernel refuses a setting; empty where it does not.
std::string refusal_of(const Graph& graph, const fusion::Setting& setting) {
  const std::string problem = fusion::problem_key(lowered_by(graph).origins.at(0).problem);
  return lowered_by(graph, {.scheme = {}, .settings = {{problem, setting}}}).origins.at(0).refusal;
}

// The same of the band kernel with stages of so many keys of 128 queries, in steps of so many. One
// stage has all keys at once.
std::string refusal_of_band(const Graph& graph, std::int64_t tile_k, std::int64_t step,
                            std::int64_t stages = 1, std::int64_t late_values = 0) {
  const fusion::Setting setting{.kernel = "attention_band_sm90",
                                .config = {{"tile_q", 128},
                                           {"tile_k", tile_k},
                                           {"step", step},
                                           {"key_groups", 1},
                                           {"stages", stages},
                                           {"blocks_per_sm", 1},
                                           {"overlap", 0},
                                           {"order", 0},
                                           {"late_values", late_values}}};
  return refusal_of(graph, setting);
}

}  // namespace

TEST_CASE("bands go to the kernel for them where rows are short") {
  const std::string band = "attention_band_sm90";
  const std::string block_wise = "attention_block_wise_sm90";
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* const mask : {"causal", "sliding", "full"}) {
      CHECK(kernel_of(attention(mask, 24, 512, head_dim)) == band);
    }
    CHECK(kernel_of(attention("sliding", 4, 4096, head_dim)) == band);
    CHECK(kernel_of(attention("dilated", 4, 4096, head_dim)) == band);
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
  CHECK(kernel_of(attention("sliding", 12, 16384, 128)) == band);
  CHECK(kernel_of(attention("sliding", 12, 4096, 256)) == block_wise);
  CHECK(kernel_of(attention("sliding", 12, 4096, 64, 5.0 * tanh(score() / 5.0))) == band);
  CHECK(kernel_of(attention("sliding", 12, 4096, 64), "a100") == "attention_block_wise_sm80");
}

TEST_CASE("short heads, about as many as SMs, go to the kernel that holds all of their keys") {
  const auto pieces = [](const char* mask, std::int64_t heads, std::int64_t length,
                         std::int64_t head_dim = 64, const char* gpu = "h200") {
    const Graph graph = attention(mask, heads, length, head_dim);
    const fusion::Option option = lowered_by(graph, {}, gpu).options.at(0).at(0);
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
    CHECK(pieces(mask, 108, 256) == 1);
    CHECK(pieces(mask, 128, 512, 128) == 0);
    CHECK(pieces(mask, 128, 512, 64, "a100") == 0);
  }
  CHECK(pieces("causal", 86, 256) == 1);
  CHECK(pieces("causal", 85, 256) == 0);
  CHECK(pieces("full", 96, 256) == 0);  // 11.6 us on an H200, and 10.4 by bands
  CHECK(pieces("full", 112, 512) == 0);
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
  CHECK(is_side_by_side(causal(), 8, 12, 512));
  CHECK(is_side_by_side(causal(), 16, 12, 512));        // 26.2 us on an H200, else 27.4
  CHECK(is_side_by_side(causal(), 24, 12, 512));        // 36.0 and 36.5
  CHECK_FALSE(is_side_by_side(causal(), 32, 12, 512));  // 48.4 and 45.2
  CHECK_FALSE(is_side_by_side(causal(), 32, 12, 320));  // 27.3 and 26.5
  CHECK(order_of_band(causal(), 2, 100, 512) == 3);     // an element has blocks enough
  CHECK(is_side_by_side(causal(), 16, 12, 2048));
  CHECK_FALSE(is_side_by_side(causal(), 16, 12, 4096));
  // Of 64 x 16 heads 43.3 us one after the other on an H200, 47.8 side by side; of longer ones 94.5
  // and 92.2.
  CHECK_FALSE(is_side_by_side(causal(), 64, 16, 256));
  CHECK(is_side_by_side(causal(), 16, 16, 1024));
  CHECK_FALSE(is_side_by_side(causal(), 1, 12, 1024));
  // Wide heads that share keys: 32.6 and 33.8, but of fewer of them 23.9 and 22.4.
  const auto are_wide_ones = [](std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                                std::int64_t length) {
    Graph graph("keys");
    const auto q = graph.input("q", {batch, heads, length, 128}, DType::Float16);
    const auto k = graph.input("k", {batch, kv_heads, length, 128}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {.mask = causal()}));
    return config_of(graph).at("order") == 1;
  };
  CHECK_FALSE(are_wide_ones(16, 28, 4, 256));
  CHECK(are_wide_ones(8, 28, 4, 256));
  CHECK(are_wide_ones(16, 12, 12, 1024));  // 106.8 and 112.6
  CHECK_FALSE(are_wide_ones(16, 12, 3, 1024));
  CHECK_FALSE(is_side_by_side(Mask(), 16, 12, 512));
  CHECK_FALSE(is_side_by_side(sliding_window(22, 22), 16, 12, 512));
}

TEST_CASE("wide heads of three or four query tiles go one after the other in a block") {
  const auto is_walked = [](const char* mask, std::int64_t heads, std::int64_t length,
                            std::int64_t head_dim = 128, const char* gpu = "h200") {
    return kernel_of(attention(mask, heads, length, head_dim), gpu) == "attention_short_heads_sm90";
  };
  // On an H200, in microseconds, and what band_sm90 takes.
  CHECK(is_walked("causal", 516, 192));  // 30.9 and 37.8
  CHECK(is_walked("causal", 264, 150));  // 19.0 and 20.4
  CHECK_FALSE(is_walked("causal", 144, 192));
  CHECK(is_walked("causal", 512, 192, 80));
  CHECK(is_walked("full", 512, 192));            // 32.0 and 37.8
  CHECK_FALSE(is_walked("full", 512, 192, 80));  // 28.7 on an H100, and 25.4 by lists
  CHECK(is_walked("full", 128, 192));            // 14.8 and 15.5
  CHECK_FALSE(is_walked("full", 512, 130));      // 30.8 and 29.6
  CHECK(is_walked("full", 512, 256));            // 44.1 and 50.3
  CHECK_FALSE(is_walked("full", 512, 200, 96));
  CHECK(is_walked("full", 512, 232, 128));
  CHECK(is_walked("full", 320, 256));        // 34.9 and 36.8
  CHECK_FALSE(is_walked("full", 200, 256));  // 26.3 and 26.3
  CHECK_FALSE(is_walked("full", 128, 256));  // 18.0 and 16.5
  CHECK(is_walked("causal", 512, 256));      // 40.3 and 42.7
  CHECK(is_walked("causal", 264, 256));
  CHECK_FALSE(is_walked("causal", 800, 256));      // 63.8 and 61.6: seven heads in some blocks
  CHECK_FALSE(is_walked("causal", 512, 256, 96));  // 37.0 and 34.8
  CHECK_FALSE(is_walked("causal", 512, 200));      // 39.5 and 37.6
  CHECK_FALSE(is_walked("full", 512, 128));
  CHECK_FALSE(is_walked("full", 512, 257));
  CHECK_FALSE(is_walked("full", 512, 192, 64));
  CHECK_FALSE(is_walked("full", 512, 192, 136));
  CHECK_FALSE(is_walked("sliding", 512, 256));  // 40.8, and 38.1 along windows
  CHECK_FALSE(is_walked("full", 512, 192, 128, "a100"));
  const auto is_walked_by = [](const Mask& mask, std::int64_t kv_heads, std::int64_t q_len,
                               std::int64_t kv_len) {
    Graph graph("keys");
    const auto q = graph.input("q", {32, 16, q_len, 128}, DType::Float16);
    const auto k = graph.input("k", {32, kv_heads, kv_len, 128}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {.mask = mask}));
    return kernel_of(graph) == "attention_short_heads_sm90";
  };
  CHECK(is_walked_by(Mask(), 16, 192, 512));  // 62.7 and 72.2
  CHECK_FALSE(is_walked_by(Mask(), 16, 192, 520));
  CHECK(is_walked_by(Mask(), 16, 256, 200));
  CHECK_FALSE(is_walked_by(Mask(), 16, 256, 512));   // 73.5 and 74.8
  CHECK_FALSE(is_walked_by(causal(), 2, 256, 256));  // 38.4 and 37.6
}

TEST_CASE("uneven rows of three tiles leave out keys, unless they are few") {
  const auto has_steps = [](std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
    return config_of("causal", heads, length, head_dim).at("step") == 64;
  };
  // On an H200, in microseconds, and with all keys at once.
  CHECK(has_steps(144, 192, 128));       // 14.7 and 18.1
  CHECK(has_steps(144, 150, 128));       // 13.7 and 15.7
  CHECK(has_steps(144, 192, 64));        // 9.7 and 11.5
  CHECK(has_steps(48, 192, 128));        // 9.5 and 10.0
  CHECK_FALSE(has_steps(48, 150, 64));   // 7.8 and 7.6
  CHECK_FALSE(has_steps(24, 192, 128));  // 8.3 and 8.4
  CHECK_FALSE(has_steps(144, 128, 128));
  CHECK(config_of("full", 144, 192, 128).at("step") == 192);
}

TEST_CASE("tiles of windows that come at once go side by side in short heads or in one wave") {
  // On an H200, in microseconds, and with the heads side by side.
  CHECK(is_in_turn("sliding", 48, 1024, 64));        // 11.3 and 12.4
  CHECK(is_in_turn("sliding", 48, 512, 128));        // 11.5 and 12.2
  CHECK(is_in_turn("full", 128, 128, 128));          // 10.2 and 11.4, on an H100
  CHECK(is_in_turn("sliding", 12, 2048, 64));        // 8.8 and 9.1
  CHECK_FALSE(is_in_turn("sliding", 24, 1280, 64));  // 10.7 and 10.5
  CHECK_FALSE(is_in_turn("sliding", 12, 4096, 64));  // 14.5 and 14.1
  CHECK_FALSE(is_in_turn("causal", 48, 128, 64));
  CHECK_FALSE(is_in_turn("causal", 24, 192, 128));
  CHECK_FALSE(is_in_turn("sliding", 48, 1024, 40));
  CHECK_FALSE(is_in_turn("window", 12, 1024, 64));
}

TEST_CASE("tiles of short heads go side by side where they are many") {
  CHECK(is_in_turn("causal", 600, 256, 128));
  // On an H100 28.3 us, and 28.7 with batch elements side by side.
  CHECK(is_in_turn("causal", 192, 512, 64));
  CHECK(is_in_turn("full", 192, 512, 64));     // 36.8 and 37.9
  CHECK(is_in_turn("sliding", 192, 512, 64));  // 20.2 and 20.7
  CHECK_FALSE(is_in_turn("causal", 384, 256, 96));
  CHECK_FALSE(is_in_turn("causal", 320, 512, 40));
  CHECK_FALSE(is_in_turn("causal", 192, 1024, 64));
  CHECK_FALSE(is_in_turn("causal", 96, 512, 64));
}

TEST_CASE("tiles of a head that share stages go side by side, but along long windows") {
  // On an H200, in microseconds, and with the heads side by side.
  CHECK(is_in_turn("full", 160, 300, 64));       // 18.1 and 19.5
  CHECK(is_in_turn("full", 32, 768, 64));        // 17.1 and 17.4
  CHECK_FALSE(is_in_turn("full", 16, 384, 64));  // 8.5 and 8.5
  CHECK(is_in_turn("full", 64, 512, 128));
  CHECK(is_in_turn("sliding", 24, 6400, 64));       // 37.6 and 38.7
  CHECK(is_in_turn("sliding", 32, 9216, 128));      // 103.6 and 107.7; on an H100 116.5 and 131.3
  CHECK_FALSE(is_in_turn("window", 24, 2048, 64));  // 35.3 and 31.7
  CHECK_FALSE(is_in_turn("sliding", 32, 5184, 32));
  CHECK_FALSE(is_in_turn("causal", 24, 2048, 64));
}

TEST_CASE("windows of up to 256 keys have two stages, but where tiles are many") {
  const auto has_two = [](std::int64_t heads, std::int64_t length) {
    return config_of("sliding", heads, length, 64).at("tile_k") == 128;
  };
  // On an H200, in microseconds, and in stages of 64 keys.
  CHECK(has_two(12, 5184));         // 20.0 and 22.1
  CHECK(has_two(12, 9216));         // 28.8 and 29.8
  CHECK_FALSE(has_two(12, 16384));  // 320 keys
  CHECK_FALSE(has_two(24, 6400));   // 38.0 and 37.6
  CHECK_FALSE(has_two(48, 6400));   // 68.0 and 64.1
}

TEST_CASE("wide heads have tiles of 128 queries, but where there are few or uneven ones") {
  const auto tile_q = [](const char* mask, std::int64_t heads, std::int64_t length,
                         std::int64_t head_dim) {
    return config_of(mask, heads, length, head_dim).at("tile_q");
  };
  // On an H200 38.7 us, and 50.3 with 64 queries.
  CHECK(tile_q("causal", 64, 1024, 128) == 128);
  CHECK(tile_q("causal", 600, 256, 128) == 128);
  CHECK(tile_q("causal", 128, 256, 128) == 128);  // 12.7 and 13.3
  CHECK(tile_q("full", 64, 512, 128) == 128);     // 22.0 and 27.9
  CHECK(tile_q("full", 48, 512, 96) == 128);
  CHECK(tile_q("full", 32, 512, 128) == 64);
  // 40.2 us, and 48.2 with 128 queries.
  CHECK(tile_q("causal", 16, 2048, 128) == 64);
  CHECK(config_of("causal", 16, 2048, 128).at("overlap") == 1);
  CHECK(tile_q("causal", 20, 2048, 128) == 64);
  CHECK(tile_q("causal", 8, 4096, 128) == 64);  // 66.6 and 88.6
  CHECK(tile_q("causal", 20, 2048, 72) == 128);
  // Both at once for fewer dimensions: 35.3 us, and 39.5 with 64 queries; of 4096 keys 60.5 and
  // 80.5 without overlap; but of 700 keys 17.8 and 16.1.
  CHECK(tile_q("causal", 16, 2048, 80) == 128);
  CHECK(config_of("causal", 16, 2048, 80).at("overlap") == 1);
  CHECK(tile_q("causal", 8, 4096, 96) == 128);
  CHECK(config_of("causal", 8, 4096, 96).at("overlap") == 1);
  CHECK(tile_q("causal", 9, 2560, 80) == 128);  // 37.2, and 43.3 with an SM for each 64 queries
  // Rows that TMA is slow with, and others of fewer than 128 dimensions where tiles are up to three
  // for each SM: 20.4 and 26.7, 32.5 and 33.9, 18.9 and 20.4, 15.1 and 15.1.
  CHECK(tile_q("causal", 20, 1024, 72) == 128);
  CHECK(config_of("causal", 12, 2048, 72).at("stages") == 4);
  CHECK(tile_q("causal", 20, 1024, 80) == 128);
  CHECK(tile_q("causal", 32, 640, 96) == 128);
  CHECK(tile_q("causal", 20, 1024, 128) == 64);
  CHECK(tile_q("causal", 48, 640, 88) == 128);  // 21.3 and 21.8
  CHECK(config_of("causal", 48, 640, 88).at("overlap") == 1);
  CHECK(tile_q("causal", 48, 640, 80) == 64);                   // 18.5 and 18.7
  CHECK(config_of("causal", 40, 1024, 88).at("overlap") == 0);  // 33.9 and 34.4
  CHECK(tile_q("causal", 32, 400, 96) == 64);                   // not timed
  // Twelve blocks more than SMs: 12.7, and 11.2 in small ones.
  CHECK(tile_q("causal", 72, 197, 128) == 64);
  CHECK(tile_q("causal", 21, 2048, 128) == 128);
}

TEST_CASE("tiles of 128 queries are not half empty") {
  const auto option = [](std::int64_t heads, std::int64_t keys, std::int64_t head_dim = 128) {
    Graph graph("attention");
    const auto q = graph.input("q", {1, heads, 64, head_dim}, DType::Float16);
    const auto k = graph.input("k", {1, heads, keys, head_dim}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {}));
    return lowered_by(graph).options.at(0).at(0);
  };
  for (const std::int64_t heads : {264, 300, 400}) {
    CHECK(option(heads, 512).kernel == "attention_band_sm90");
    CHECK(option(heads, 512).config.at("tile_q") == 64);
  }
  CHECK(option(300, 1000).config.at("tile_q") == 64);
  // Long windows behind which many keys lie.
  Graph graph("window");
  const auto q = graph.input("q", {64, 12, 64, 64}, DType::Float16);
  const auto k = graph.input("k", {64, 12, 8192, 64}, DType::Float16);
  graph.output("y", graph.attention(q, k, k, {.mask = sliding_window(1023, 1023)}));
  CHECK(config_of(graph).at("tile_k") == 128);
  // Where lists of 64 queries leave places too.
  CHECK(option(512, 2048, 64).kernel == "attention_block_wise_sm90");
}

TEST_CASE("rows of keys that fill no lines are read for 128 queries") {
  // 8 x 8 heads of 1000 queries take 30.6 us on an H200, and 46.9 with 64.
  CHECK(config_of("causal", 64, 1000, 40).at("tile_q") == 128);
  CHECK(config_of("causal", 48, 512, 40).at("tile_q") == 128);
  CHECK(config_of("full", 192, 512, 40).at("tile_q") == 128);
  CHECK(config_of("full", 192, 512, 32).at("tile_q") == 128);
  CHECK(config_of("causal", 192, 512, 48).at("tile_q") == 64);
  CHECK(config_of("full", 192, 512, 64).at("tile_q") == 64);
}

TEST_CASE("keys of up to 48 dimensions are read for 128 queries where they are many") {
  const auto step = [](const char* mask, std::int64_t heads, std::int64_t length,
                       std::int64_t head_dim) {
    const kernel::KernelConfig config = config_of(mask, heads, length, head_dim);
    return config.at("tile_q") == 128 ? config.at("step") : 0;
  };
  // On an H200, in microseconds, and as it was before.
  CHECK(step("causal", 192, 512, 32) == 64);    // 22.1 and 22.8
  CHECK(step("causal", 64, 2048, 32) == 64);    // 68.4 and 74.3
  CHECK(step("causal", 64, 1024, 32) == 0);     // 26.4 and 24.6
  CHECK(step("causal", 128, 1024, 48) == 128);  // 47.3 and 50.2
  CHECK(step("causal", 32, 1024, 48) == 0);
  CHECK(step("full", 256, 512, 48) == 128);                                         // 45.2 and 48.7
  CHECK(kernel_of(attention("full", 64, 768, 40)) == "attention_block_wise_sm90");  // 27.9 and 31.1
  CHECK(kernel_of(attention("full", 96, 768, 32)) == "attention_block_wise_sm90");  // 33.5 and 36.2
  CHECK(step("full", 48, 1024, 40) == 128);   // 43.5, and 47.2 with lists
  CHECK(step("full", 512, 1024, 40) == 128);  // 297 and 314
  CHECK(step("full", 256, 384, 48) == 64);
}

TEST_CASE(
    "uneven rows overlap where there are few tiles, else blocks are many and small or read less") {
  const auto is = [](std::int64_t heads, std::int64_t length, std::int64_t tile_q,
                     std::int64_t blocks_per_sm, std::int64_t overlap) {
    const kernel::KernelConfig config = config_of("causal", heads, length, 64);
    return config.at("tile_q") == tile_q && config.at("blocks_per_sm") == blocks_per_sm &&
           config.at("overlap") == overlap;
  };
  CHECK(is(32, 1024, 64, 2, 1));  // 18.6 us on an H200, 21.4 with four blocks
  CHECK(is(48, 512, 64, 2, 1));   // 12.6, and 13.7 in pairs of warp groups
  CHECK(is(64, 1024, 64, 4, 0));
  CHECK(is(160, 256, 64, 4, 0));
  CHECK(is(32, 1280, 64, 2, 1));  // 22.5, and 26.8 in pairs of warp groups,
  CHECK(is(12, 2500, 64, 2, 1));  // which take 31.1 here, and alone 35.1
  CHECK(config_of("causal", 32, 1280, 64).at("key_groups") == 1);
  CHECK(config_of("causal", 12, 2500, 64).at("key_groups") == 2);
  CHECK(is(12, 4096, 64, 3, 0));    // 63.4, and 72.3 with four blocks
  CHECK(is(16, 4096, 64, 4, 0));    // 76.3, and 83.5 with three, which leave places
  CHECK(is(192, 2048, 64, 4, 0));   // 228.3, and 236.3 with 128 queries,
  CHECK(is(192, 4096, 128, 2, 0));  // which take 831.6 here, where small ones take 847.4
}

TEST_CASE("many uneven rows of a few tiles do not have all keys at once") {
  CHECK(config_of("causal", 384, 192, 64).at("stages") == 2);  // 14.1 us on an H200, and 15.5
  CHECK(config_of("causal", 200, 192, 64).at("stages") == 3);
  CHECK(config_of("full", 384, 192, 64).at("stages") == 1);  // 15.8, and 16.4
}

TEST_CASE("even rows whose blocks would leave too much of a last wave empty go elsewhere") {
  const std::string band = "attention_band_sm90";
  const std::string lists = "attention_block_wise_sm90";
  // Three blocks an SM are 396 at once. Of the 1024 of 64 heads lists take 45.3 us on an H200, and
  // two blocks with twice as many queries 44.3; those of 96 heads of 768 queries leave places too.
  CHECK(config_of("full", 48, 1024, 64).at("tile_q") == 64);
  CHECK(config_of("full", 64, 1024, 64).at("tile_q") == 128);
  CHECK(kernel_of(attention("full", 96, 768, 64)) == lists);
  // Small tiles of windows are four at once: 35.8 us, and 37.7 with steps of 128 keys.
  CHECK(config_of("window", 12, 4096, 64).at("tile_k") == 64);
  // And those that see all keys, but for the longest: 406.7 and 418.2 with 192 heads, 289.4 and
  // 283.5 with 32 of 4096 keys.
  CHECK(kernel_of(attention("full", 192, 2048, 64)) == lists);
  CHECK(kernel_of(attention("full", 32, 4096, 64)) == band);
  CHECK(kernel_of(attention("full", 14, 5184, 64)) == lists);  // 188 and 237: three waves of two
  CHECK(kernel_of(attention("full", 96, 512, 64)) == lists);   // 22.9; 23.4 by held keys
  CHECK(kernel_of(attention("window", 64, 8192, 64)) == band);
}

TEST_CASE("few query tiles along a band have an SM each, share it with one more, or go to lists") {
  const auto blocks_per_sm = [](const char* mask, std::int64_t heads, std::int64_t length,
                                std::int64_t head_dim = 64) {
    const Graph graph = attention(mask, heads, length, head_dim);
    const fusion::Option option = lowered_by(graph).options.at(0).at(0);
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
  CHECK(blocks_per_sm("causal", 3, 2048) == 1);
  CHECK(blocks_per_sm("causal", 1, 8192) == 0);
  CHECK(blocks_per_sm("causal", 2, 3072) == 0);       // 19.1 and 22.7
  CHECK(blocks_per_sm("causal", 1, 1536) == 1);       // 13.9 and 15.0
  CHECK(blocks_per_sm("causal", 1, 2048, 128) == 0);  // 17.9 and 20.3
  CHECK(blocks_per_sm("causal", 2, 2048, 128) == 1);
  CHECK(blocks_per_sm("causal", 6, 4096) == 2);
  CHECK(blocks_per_sm("causal", 8, 2048, 128) == 1);
  CHECK(blocks_per_sm("causal", 32, 512, 128) == 2);
}

TEST_CASE("one warp group has the keys of a few queries where tiles are about as many as SMs") {
  const auto tile_k = [](std::int64_t heads, std::int64_t q_len, std::int64_t kv_len) {
    Graph graph("attention");
    const auto q = graph.input("q", {1, heads, q_len, 64}, DType::Float16);
    const auto k = graph.input("k", {1, heads, kv_len, 64}, DType::Float16);
    const auto v = graph.input("v", {1, heads, kv_len, 64}, DType::Float16);
    graph.output("o", graph.attention(q, k, v, {}));
    return config_of(graph).at("tile_k");
  };
  CHECK(tile_k(160, 1, 257) == 64);  // 10.6 us on an H100, and 11.9 with two
  CHECK(tile_k(160, 16, 512) == 64);
  CHECK(tile_k(160, 17, 512) == 128);
  CHECK(tile_k(160, 1, 513) == 128);
}

TEST_CASE("up to two causal tiles for each SM are large where rows of keys are slow") {
  // On an H100, in microseconds, and with tiles of 64 queries.
  CHECK(config_of("causal", 24, 577, 72).at("tile_q") == 128);  // 15.5 and 17.1
  CHECK(config_of("causal", 24, 577, 40).at("tile_q") == 128);  // 13.7 and 15.7
  CHECK(config_of("causal", 20, 600, 56).at("tile_q") == 64);   // 12.4 and 13.3
  CHECK(config_of("causal", 10, 1400, 40).at("stages") == 4);   // 19.5 and 21.1
  CHECK(config_of("causal", 10, 1400, 40).at("tile_k") == 128);
  CHECK(config_of("causal", 24, 577, 64).at("tile_q") == 64);
}

TEST_CASE("few tiles that see all are large, or go to lists, where rows of keys fill no lines") {
  const auto config = [](std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
    const Graph graph = attention("full", heads, length, head_dim);
    const fusion::Option option = lowered_by(graph).options.at(0).at(0);
    return option.kernel == "attention_band_sm90" ? option.config : kernel::KernelConfig{};
  };
  const auto tile_q = [&](std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
    const kernel::KernelConfig chosen = config(heads, length, head_dim);
    return chosen.empty() ? 0 : chosen.at("tile_q");
  };
  // Up to two for each of 132 SMs: 16.4 us and 21.7 with 64 queries, 12.1 and 13.9, 16.3 and 17.3.
  CHECK(tile_q(16, 768, 72) == 128);
  CHECK(config(16, 768, 72).at("stages") == 4);
  CHECK(tile_q(30, 450, 40) == 128);
  CHECK(tile_q(16, 768, 96) == 128);
  CHECK(tile_q(16, 768, 128) == 64);  // 17.9 and 18.0
  CHECK(tile_q(16, 768, 48) == 64);   // 13.6 and 13.9
  CHECK(tile_q(16, 768, 64) == 64);   // 13.3 and 14.5
  CHECK(tile_q(10, 1500, 40) == 0);   // lists 22.8, bands 31.4
  CHECK(tile_q(4, 2048, 88) == 0);    // 29.3 and 37.3
  CHECK(tile_q(8, 1024, 88) == 64);
  CHECK(tile_q(2, 1280, 72) == 64);  // 16.3 and 17.5 on an H100
  // Up to three: lists 26.6 and bands 29.9, 13.1 and 14.7, 15.1 and 16.6; but 12.6 and 13.5.
  CHECK(tile_q(20, 1024, 72) == 0);
  CHECK(tile_q(60, 320, 96) == 0);
  CHECK(tile_q(40, 512, 40) == 0);
  CHECK(tile_q(40, 512, 32) == 64);
  CHECK(tile_q(72, 300, 40) == 128);  // 13.8 and 14.7 on an H100
  CHECK(tile_q(45, 450, 96) == 128);  // 135 tiles of 192 queries: 19.0, and 19.1 by lists
  // More of narrow heads: 24.2 and 26.8 without overlap, 44.9 by lists and 53.9 where a second wave
  // leaves places.
  CHECK(config(64, 640, 48).empty());
  CHECK(config(28, 1024, 56).at("overlap") == 1);
  CHECK(config(24, 1536, 40).empty());
  CHECK(config(26, 1152, 64).at("stages") == 4);  // 26.7, and 28.5 by lists
  CHECK(config(36, 1024, 64).empty());            // 29.8 by lists, and 35.2
  CHECK(tile_q(20, 1024, 24) == 128);             // thin rows were not timed
  CHECK(config(20, 1024, 24).at("overlap") == 0);
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

TEST_CASE("windows that are long, in large grids") {
  // The tiles of wide heads go side by side.
  CHECK(config_of("window", 32, 16384, 128).at("order") == 3);
  CHECK(config_of("window", 32, 16384, 128).at("tile_q") == 128);
  CHECK(config_of("window", 32, 4096, 128).at("order") == 0);
  // On an H100 126 us of 12 heads, and 130 with tiles of 128 queries.
  CHECK(config_of("window", 32, 16384, 64).at("tile_q") == 64);
}

TEST_CASE("long windows most of whose rows are cut short are worked on as causal ones are") {
  for (const char* const mask : {"window", "causal"}) {  // of 1024 keys
    const auto of_wide = config_of(mask, 16, 1500, 128);
    CHECK(of_wide == kernel::KernelConfig{{"tile_q", 64},
                                          {"tile_k", 64},
                                          {"step", 64},
                                          {"key_groups", 1},
                                          {"stages", 3},
                                          {"blocks_per_sm", 2},
                                          {"overlap", 1},
                                          {"order", 0},
                                          {"late_values", 0}});
    CHECK(config_of(mask, 20, 1025, 64).at("overlap") == 1);
  }
  CHECK_FALSE(is_in_turn("window", 10, 1500, 64));
  CHECK(order_of_band(sliding_window(1023, 0), 2, 10, 1500) == 1);
  CHECK(order_of_band(sliding_window(1023, 0), 2, 10, 4096) == 0);
  CHECK(config_of("window", 16, 2048, 128).at("tile_q") == 128);  // 34.3 us, with 64 39.3
}

TEST_CASE("even long windows of few heads have their batch elements side by side") {
  const Mask window = sliding_window(1023, 0);
  CHECK(order_of_band(window, 8, 1, 2304) == 1);
  CHECK(order_of_band(window, 4, 8, 2304) == 1);   // 43.9 us, and 45.9 one after the other
  CHECK(order_of_band(window, 2, 16, 2048) == 0);  // 39.0, and 38.7
  // Two blocks an SM, whose products overlap, where rows that are cut short are many: 21.9 us,
  // 27.5 with four; but 28.4 and 30.9 in the long one.
  CHECK(config_of("window", 12, 2304, 64).at("overlap") == 1);
  CHECK(config_of("window", 8, 4096, 64).at("overlap") == 0);
  // Large tiles, of 128 dimensions, would be one and a bit for each SM.
  CHECK(config_of("window", 8, 2304, 128).at("tile_q") == 64);   // 23.6 us, with 128 29.0
  CHECK(config_of("window", 4, 6000, 128).at("tile_q") == 128);  // 36.3, with 64 40.6
}

TEST_CASE("all keys of a tile that fit registers are as few groups of 16 as hold them") {
  const auto keys = [](std::int64_t length) {
    return lowered_by(attention("sliding", 192, length, 64))
        .options.at(0)
        .at(0)
        .config.at("tile_k");
  };
  CHECK(keys(128) == 96);    // 11 to each side of 64 queries
  CHECK(keys(512) == 112);   // 22
  CHECK(keys(1024) == 128);  // 32
}

TEST_CASE("blocks that are all on an SM at once ask for values when their keys are there") {
  const auto are_late = [](const char* mask, std::int64_t heads, std::int64_t length,
                           std::int64_t head_dim) {
    return config_of(mask, heads, length, head_dim).at("late_values") == 1;
  };
  CHECK(are_late("sliding", 12, 1024, 64));
  CHECK(are_late("sliding", 12, 2048, 64));         // 384 blocks, three on an SM
  CHECK_FALSE(are_late("sliding", 12, 4096, 64));   // 768
  CHECK(are_late("sliding", 32, 1024, 64));         // 512, four on an SM
  CHECK_FALSE(are_late("sliding", 48, 1024, 64));   // 768
  CHECK(are_late("sliding", 12, 1024, 128));        // 192, two on an SM
  CHECK_FALSE(are_late("sliding", 20, 1024, 128));  // 320
  CHECK_FALSE(are_late("causal", 12, 1024, 64));    // stages
  const Graph graph = attention("sliding", 12, 128, 64);
  CHECK(refusal_of_band(graph, 160, 160, 1, 1).empty());
  CHECK(refusal_of_band(graph, 64, 64, 2).empty());
  CHECK_FALSE(refusal_of_band(graph, 64, 64, 2, 1).empty());
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
    // Of wide heads two groups of warps are worth it with fewer tiles.
    for (const std::int64_t head_dim : {80, 96, 128}) {
      CHECK(kernel_of(attention(mask, 192, 4096, head_dim)) == window);
      CHECK(kernel_of(attention(mask, 24, 2048, head_dim)) == window);
      CHECK(kernel_of(attention(mask, 16, 1024, head_dim)) == band);
      CHECK(kernel_of(attention(mask, 128, 512, head_dim)) == window);  // 1024
      CHECK(kernel_of(attention(mask, 72, 512, head_dim)) == band);     // 576
    }
    CHECK(kernel_of(attention(mask, 192, 4096, 136)) != window);
  }
  CHECK(kernel_of(attention("sliding", 24, 1024, 128)) == window);  // 384 tiles
  CHECK(kernel_of(attention("dilated", 24, 1024, 128)) == band);    // of twice as many short rows
  CHECK(kernel_of(attention("sliding", 96, 1024, 64)) == band);     // 1536 tiles of 128 keys,
  CHECK(kernel_of(attention("sliding", 48, 2048, 64)) == window);   // of 160,
  CHECK(kernel_of(attention("sliding", 24, 4096, 64)) == window);   // and of 192
  CHECK(kernel_of(attention("sliding", 12, 4096, 64)) == band);
  CHECK(kernel_of(attention("causal", 192, 4096, 64)) == band);
  CHECK(kernel_of(attention("sliding", 48, 16384, 64)) == band);  // 320 keys at once
  CHECK(kernel_of(attention("sliding", 192, 4096, 64, 5.0 * tanh(score() / 5.0))) == band);
  // Whose heads share keys which L2 does not hold: 96.0 us by tiles on an H200, 134.6 along
  // windows.
  const auto with_groups = [](std::int64_t batch, std::int64_t keys) {
    Graph graph("keys");
    const auto q = graph.input("q", {batch, 32, 512, 128}, DType::Float16);
    const auto k = graph.input("k", {batch, 8, keys, 128}, DType::Float16);
    graph.output("y", graph.attention(q, k, k, {.mask = sliding_window(22, 22)}));
    return kernel_of(graph);
  };
  CHECK(with_groups(32, 512) == band);
  CHECK(with_groups(8, 512) == window);
  CHECK(with_groups(8, 4096) == window);  // of which queries see no more
}

TEST_CASE("a walk along windows has a place for queries beside those of its warp groups") {
  const auto refusal = [](std::int64_t head_dim, std::int64_t groups, std::int64_t slots,
                          std::int64_t query_slots) {
    return refusal_of(
        attention("sliding", 192, 2048, head_dim),
        {.kernel = "attention_window_sm90",
         .config = {
             {"tile_k", 160}, {"groups", groups}, {"slots", slots}, {"query_slots", query_slots}}});
  };
  const std::string start = "attention_window_sm90 does not allow";
  CHECK(refusal(128, 2, 5, 4).empty());
  CHECK(refusal(128, 2, 6, 2).starts_with(start));  // which would never end
  CHECK(refusal(128, 3, 5, 4).starts_with(start));  // registers
  CHECK(refusal(64, 3, 10, 6).empty());
  CHECK(refusal(64, 3, 5, 4).starts_with(start));
}

TEST_CASE("steps of a band leave no stage that holds all keys") {
  const Graph graph = attention("sliding", 12, 128, 64);
  CHECK(refusal_of_band(graph, 160, 160).empty());
  CHECK(refusal_of_band(graph, 192, 96).empty());
  const std::string start = "attention_band_sm90 does not allow";
  CHECK(refusal_of_band(graph, 160, 96).starts_with(start));  // to key 191 of 160
  CHECK(refusal_of_band(graph, 160, 80).starts_with(start));  // groups of 16 are for one step
}

TEST_CASE("what makes one step of keys is allowed only where there is one") {
  const Graph graph = attention(sliding_window(11, 0), 1, 12, 128);
  CHECK(refusal_of_band(graph, 128, 128).empty());
  // The second step would have to scale what the first made.
  CHECK_FALSE(refusal_of_band(graph, 128, 64).empty());
}
