// Where all keys of 16, 64 or 128 queries are taken at once, on GPUs that are not there.
#include "fusion/few_keys_rules.hpp"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fusion/choice_testing.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::testing;

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

TEST_CASE("other masks of few keys go to kernels with a bit for each score, while these are fast") {
  const std::string bits = "attention_few_keys_bits";
  const std::string wgmma = "attention_few_keys_sm90";
  const auto has_few = [](const char* mask, std::int64_t heads, std::int64_t length,
                          std::int64_t head_dim) {
    return kernel_of(attention(mask, heads, length, head_dim)).starts_with("attention_few_keys");
  };
  for (const char* const mask : {"longformer", "bigbird", "random1"}) {
    for (const std::int64_t head_dim : {64, 128}) {
      CHECK(kernel_of(attention(mask, 12, 128, head_dim)) == bits);
      CHECK(kernel_of(attention(mask, 12, 128, head_dim), "a100") == bits);
      CHECK(kernel_of(attention(mask, 96, 128, head_dim)) == wgmma);
    }
    CHECK(kernel_of(attention(mask, 16, 256, 64)) == bits);  // two blocks of four tiles
    CHECK_FALSE(has_few(mask, 17, 256, 64));
    CHECK(kernel_of(attention(mask, 8, 256, 128)) == bits);
    CHECK_FALSE(has_few(mask, 9, 256, 128));
    CHECK(kernel_of(attention(mask, 33, 128, 64)) == bits);  // 264 blocks of two tiles
    CHECK(kernel_of(attention(mask, 34, 128, 64)) == wgmma);
    CHECK(kernel_of(attention(mask, 34, 128, 64), "a100") == bits);
    CHECK(kernel_of(attention(mask, 1000, 192, 64)) == wgmma);
    CHECK_FALSE(has_few(mask, 4, 257, 64));
    CHECK_FALSE(has_few(mask, 4, 128, 136));
    CHECK(kernel_of(attention(mask, 88, 192, 128)) == wgmma);  // two blocks for each SM
    CHECK_FALSE(has_few(mask, 89, 192, 128));
    CHECK(has_few(mask, 264, 128, 128));  // two waves
    CHECK_FALSE(has_few(mask, 265, 128, 128));
    CHECK(has_few(mask, 1000, 112, 128));
    CHECK(has_few(mask, 264, 192, 40));
    CHECK_FALSE(has_few(mask, 265, 192, 40));
  }
  CHECK(kernel_of(attention("causal", 12, 128, 64)) == "attention_few_keys");
  CHECK(kernel_of(attention("random1", 1024, 32, 64)) != wgmma);  // mma.sync has smaller tiles
}

TEST_CASE("wgmma has a tile for each head where that saves reads, and values when keys are there") {
  const auto setting = [](const char* mask, std::int64_t heads, std::int64_t length,
                          std::int64_t head_dim) {
    const fusion::Option option =
        lowered_by(attention(mask, heads, length, head_dim)).options.at(0).at(0);
    CHECK(option.kernel == "attention_few_keys_sm90");
    const auto& config = option.config;
    return fmt::format("{} x {}, {} an SM{}", config.at("tile_q"), config.at("tile_k"),
                       config.at("blocks_per_sm"), config.at("late_values") == 1 ? ", late" : "");
  };
  CHECK(setting("random1", 160, 64, 64) == "64 x 64, 4 an SM, late");
  CHECK(setting("random1", 528, 64, 64) == "64 x 64, 4 an SM, late");
  CHECK(setting("random1", 529, 64, 64) == "64 x 64, 4 an SM");
  CHECK(setting("bigbird", 96, 128, 64) == "64 x 128, 4 an SM, late");
  CHECK(setting("bigbird", 96, 100, 64) == "64 x 112, 4 an SM, late");
  CHECK(setting("bigbird", 60, 180, 64) == "64 x 192, 3 an SM, late");
  CHECK(setting("bigbird", 66, 128, 128) == "64 x 128, 2 an SM, late");  // tiles for all SMs
  CHECK(setting("bigbird", 67, 128, 128) == "128 x 128, 1 an SM, late");
  CHECK(setting("bigbird", 132, 128, 128) == "128 x 128, 1 an SM, late");
  CHECK(setting("bigbird", 133, 128, 128) == "64 x 128, 2 an SM, late");
  CHECK(setting("bigbird", 264, 96, 80) == "128 x 96, 2 an SM, late");
  CHECK(setting("bigbird", 265, 96, 80) == "64 x 96, 3 an SM, late");
  CHECK(setting("bigbird", 400, 96, 72) == "128 x 96, 2 an SM, late");  // slow rows
  CHECK(setting("bigbird", 400, 96, 40) == "128 x 96, 2 an SM, late");
}

TEST_CASE("a bit for each score is for masks that are known before, and for plain scores") {
  const auto has_few = [](const Graph& graph) {
    return kernel_of(graph).starts_with("attention_few_keys");
  };
  const auto with_score = [&](std::int64_t heads) {
    return attention("bigbird", heads, 128, 64, 5.0 * tanh(score() / 5.0));
  };
  CHECK_FALSE(has_few(with_score(12)));
  CHECK_FALSE(has_few(with_score(96)));
  for (const std::int64_t heads : {2, 96}) {
    Graph data("data");
    const auto q = data.input("q", {1, heads, 128, 64}, DType::Float16);
    const MaskInput keep =
        data.mask_input("keep", {1, 1, 128, 128}, {.form = MaskForm::Dense, .max_part_tiles = 4});
    data.output("y", data.attention(q, q, q, {.mask_input = keep}));
    CHECK_FALSE(has_few(data));
    Graph captured("captured");
    const auto k = captured.input("k", {1, heads, 128, 64}, DType::Float16);
    const Capture step = captured.capture(captured.input("step", {1}, DType::Int32));
    captured.output("y",
                    captured.attention(k, k, k, {.mask = Mask(key_position() % step(0) == 0)}));
    CHECK_FALSE(has_few(captured));
  }
}

TEST_CASE("masks that leave out most tiles go to kernels that skip them") {
  const Mask blocks(query_position() / 64 == key_position() / 64);
  const Mask more = Mask(query_position() / 128 == key_position() / 128) || key_position() < 64;
  for (const std::int64_t batch : {1, 12}) {  // three tiles of nine, and six
    const auto has_few = [&](const Mask& mask) {
      return kernel_of(attention(mask, batch, 12, 192)).starts_with("attention_few_keys");
    };
    CHECK_FALSE(has_few(blocks));
    CHECK(has_few(more));
  }
}

TEST_CASE("times of wgmma are predicted to within a fifth of what an H200 took") {
  constexpr double kOfReplay = 2.8;  // us that a graph of nothing takes
  const auto predicted = [](const char* mask, std::int64_t heads, std::int64_t length,
                            std::int64_t head_dim) {
    const fusion::Option option =
        lowered_by(attention(mask, heads, length, head_dim)).options.at(0).at(0);
    CHECK(option.kernel == "attention_few_keys_sm90");
    return kOfReplay + option.time.total_us();
  };
  CHECK(predicted("random1", 160, 80, 128) == doctest::Approx(8.7).epsilon(0.2));
  CHECK(predicted("longformer", 384, 80, 88) == doctest::Approx(13.8).epsilon(0.2));
  CHECK(predicted("longformer", 480, 48, 40) == doctest::Approx(7.7).epsilon(0.2));
  CHECK(predicted("bigbird", 576, 160, 64) == doctest::Approx(20.6).epsilon(0.2));
}
