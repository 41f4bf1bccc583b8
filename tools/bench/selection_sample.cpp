#include "selection_sample.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <utility>

namespace stof::bench {

namespace {

struct Family {
  std::string name;
  // Three of them, by density.
  std::vector<std::pair<std::string, std::function<Mask(std::int64_t)>>> variants;
};

Mask diagonal() {
  return Mask(query_position() == key_position());
}

// Packed documents of half of `mean` to one and a half of it.
Mask documents_of(std::int64_t mean, std::int64_t length) {
  std::mt19937_64 random(static_cast<std::uint64_t>(mean));
  std::vector<std::int32_t> offsets = {0};
  while (offsets.back() < length) {
    const auto next = offsets.back() + mean / 2 +
                      static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(mean));
    offsets.push_back(static_cast<std::int32_t>(std::min(length, next)));
  }
  return documents(offsets);
}

std::int64_t blocks_of(std::int64_t length, std::int64_t most) {
  return std::min(most, length / 64);
}

// What each query sees of its stride, and of the stride that lies as far back.
Mask strided_causal(std::int64_t stride) {
  return (sliding_window(stride - 1, 0) || strided(stride)) && causal();
}

std::vector<Family> families() {
  using Length = std::int64_t;
  return {
      {"dense",
       {{"all", [](Length) { return Mask(); }},
        {"causal", [](Length) { return causal(); }},
        {"causal, a quarter is a prefix", [](Length n) { return prefix(n / 4); }}}},
      {"sliding",
       {{"16 to each side", [](Length) { return sliding_window(16, 16); }},
        {"64 to each side", [](Length) { return sliding_window(64, 64); }},
        {"256 to each side", [](Length) { return sliding_window(256, 256); }}}},
      {"causal_window",
       {{"32", [](Length) { return sliding_window(31, 0); }},
        {"128", [](Length) { return sliding_window(127, 0); }},
        {"1024", [](Length) { return sliding_window(1023, 0); }}}},
      {"dilated",
       {{"16 to each side by 2", [](Length) { return dilated(16, 16, 2); }},
        {"32 to each side by 4", [](Length) { return dilated(32, 32, 4); }},
        {"128 to each side by 2", [](Length) { return dilated(128, 128, 2); }}}},
      {"longformer",
       {{"16 to each side, 16 global", [](Length) { return longformer(16, 16); }},
        {"32 to each side, 64 global", [](Length) { return longformer(32, 64); }},
        {"128 to each side, 32 global", [](Length) { return longformer(128, 32); }}}},
      {"bigbird",
       {{"16 to each side, 16 global, 0.2 %",
         [](Length) { return longformer(16, 16) || random_tokens(0.002, 5); }},
        {"32 to each side, 32 global, 1 %",
         [](Length) { return longformer(32, 32) || random_tokens(0.01, 5); }},
        {"32 to each side, 32 global, 10 %",
         [](Length) { return longformer(32, 32) || random_tokens(0.1, 5); }}}},
      {"bigbird_block",
       {{"1, 1 and 1 of 64", [](Length) { return bigbird(64, 1, 1, 1, 3); }},
        {"3, 2 and 3 of 64", [](Length) { return bigbird(64, 3, 2, 3, 3); }},
        {"3, 2 and 12 of 64",
         [](Length n) { return bigbird(64, 3, blocks_of(n, 2), blocks_of(n, 12), 3); }}}},
      {"documents",
       {{"of 64", [](Length n) { return documents_of(64, n) && causal(); }},
        {"of 300", [](Length n) { return documents_of(300, n) && causal(); }},
        {"of 1500", [](Length n) { return documents_of(1500, n); }}}},
      {"random",
       {{"0.2 %", [](Length) { return random_tokens(0.002, 4) || diagonal(); }},
        {"1 %", [](Length) { return random_tokens(0.01, 4) || diagonal(); }},
        {"5 %", [](Length) { return random_tokens(0.05, 4) || diagonal(); }}}},
      {"strided",
       {{"by 128", [](Length) { return strided(128) && causal(); }},
        {"by 16", [](Length) { return strided(16) && causal(); }},
        {"by 64 and a window", [](Length) { return strided_causal(64); }}}},
      {"random_blocks",
       {{"1 of 64", [](Length) { return random_blocks(64, 1, 6) || diagonal(); }},
        {"4 of 64", [](Length n) { return random_blocks(64, blocks_of(n, 4), 6) || diagonal(); }},
        {"16 of 64",
         [](Length n) { return random_blocks(64, blocks_of(n, 16), 6) || diagonal(); }}}},
      {"window_2d",
       {{"1 of 16", [](Length) { return window_2d(16, 1); }},
        {"3 of 32", [](Length) { return window_2d(32, 3); }},
        {"6 of 64", [](Length) { return window_2d(64, 6); }}}},
  };
}

}  // namespace

std::vector<SelectionGroup> selection_sample() {
  constexpr std::array<std::int64_t, 8> kLengths = {128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  constexpr std::array<SelectionShape, 8> kShapes = {{
      {.batch = 1, .heads = 1, .head_dim = 64},
      {.batch = 4, .heads = 16, .head_dim = 128},
      {.batch = 1, .heads = 16, .head_dim = 64},
      {.batch = 1, .heads = 4, .head_dim = 128},
      {.batch = 1, .heads = 4, .head_dim = 64},
      {.batch = 1, .heads = 16, .head_dim = 128},
      {.batch = 4, .heads = 16, .head_dim = 64},
      {.batch = 1, .heads = 1, .head_dim = 128},
  }};
  std::vector<SelectionGroup> sample;
  std::size_t pair = 0;
  for (const Family& family : families()) {
    for (const auto& [variant, make] : family.variants) {
      for (const std::int64_t length : kLengths) {
        const std::size_t first = 2 * (pair++ % 4);
        sample.push_back({.family = family.name,
                          .variant = variant,
                          .length = length,
                          .mask = make(length),
                          .shapes = {kShapes.at(first), kShapes.at(first + 1)}});
      }
      ++pair;  // other shapes for the same length
    }
  }
  std::mt19937_64 random(7);
  for (std::size_t i = sample.size(); i > 1; --i) {
    std::swap(sample[i - 1], sample[random() % i]);
  }
  return sample;
}

}  // namespace stof::bench
