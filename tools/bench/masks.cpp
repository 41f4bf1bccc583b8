#include "masks.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace stof::bench {

namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The largest integer whose square is at most n.
std::int64_t square_root(std::int64_t n) {
  std::int64_t root = 0;
  while ((root + 1) * (root + 1) <= n) {
    ++root;
  }
  return root;
}

// Window, global tokens, and in each row of 32 x 32 blocks one near the diagonal, a tenth filled.
Mask bigbird_of_tokens(std::int64_t n) {
  constexpr std::int64_t kBlock = 32;
  constexpr double kFilled = 0.1;
  const std::int64_t width = square_root(n);
  const std::int64_t last_block = n / kBlock - 1;
  const Expr q = query_position();
  const Expr k = key_position();
  const Expr near = q / kBlock + draw(0, q / kBlock, 0, 3) - 1;
  const Expr block = max(min(near, last_block), 0);
  return longformer(width, width) || (k / kBlock == block && keep(1, q, k, kFilled));
}

struct NamedMask {
  std::string_view name;
  Mask (*of)(std::int64_t n);
};

constexpr std::int64_t kChunk = 1024;

constexpr std::array kMasks = {
    NamedMask{"full", [](std::int64_t) { return Mask(); }},
    NamedMask{"causal", [](std::int64_t) { return causal(); }},
    NamedMask{"sliding",
              [](std::int64_t n) { return sliding_window(square_root(n), square_root(n)); }},
    NamedMask{"dilated", [](std::int64_t n) { return dilated(square_root(n), square_root(n), 2); }},
    NamedMask{"longformer",
              [](std::int64_t n) {
                const std::int64_t width = square_root(n);
                return longformer(width, width) || global_tokens(n / 2, width);
              }},
    NamedMask{"bigbird", bigbird_of_tokens},
    NamedMask{"bigbird_block", [](std::int64_t) { return bigbird(64, 3, 2, 3, 3); }},
    NamedMask{"doc_causal",
              [](std::int64_t n) { return documents(document_offsets(n)) && causal(); }},
    NamedMask{"window", [](std::int64_t) { return sliding_window(kChunk - 1, 0); }},
    NamedMask{"random1",
              [](std::int64_t) {
                return random_tokens(0.01, 4) || Mask(query_position() == key_position());
              }},
    NamedMask{"prefix", [](std::int64_t n) { return prefix(n / 4); }},
    NamedMask{"documents", [](std::int64_t n) { return documents(document_offsets(n)); }},
    NamedMask{"chunked",
              [](std::int64_t) {
                return causal() && Mask(query_position() / kChunk == key_position() / kChunk);
              }},
    NamedMask{"sinks",
              [](std::int64_t) {
                return causal() && (sliding_window(kChunk - 1, 0) || Mask(key_position() < 4));
              }},
    NamedMask{"frames", [](std::int64_t) { return block_causal(256); }},
    NamedMask{"grid", [](std::int64_t n) { return window_2d(square_root(n), 6); }},
    NamedMask{"strided",
              [](std::int64_t n) {
                const std::int64_t width = square_root(n);
                return causal() && (sliding_window(width - 1, 0) || strided(width));
              }},
    NamedMask{"local", [](std::int64_t) { return sliding_window(64, 64); }},
};

}  // namespace

std::vector<std::string_view> mask_names() {
  std::vector<std::string_view> names(kMasks.size());
  std::transform(kMasks.begin(), kMasks.end(), names.begin(),
                 [](const NamedMask& mask) { return mask.name; });
  return names;
}

Mask mask(std::string_view name, std::int64_t n) {
  const auto found = std::find_if(kMasks.begin(), kMasks.end(),
                                  [&](const NamedMask& mask) { return mask.name == name; });
  if (found == kMasks.end()) {
    throw std::invalid_argument("no bench mask " + std::string(name));
  }
  return found->of(n);
}

std::vector<std::int32_t> document_offsets(std::int64_t n) {
  constexpr std::uint64_t kSeed = 2;
  std::vector<std::int32_t> offsets = {0};
  for (std::uint64_t i = 0; offsets.back() < n; ++i) {
    const std::uint64_t hash = mix(mix(mix(kSeed) ^ i));
    const std::int64_t length = 300 + static_cast<std::int64_t>((hash >> 33) % 801);
    offsets.push_back(static_cast<std::int32_t>(std::min(n, offsets.back() + length)));
  }
  return offsets;
}

}  // namespace stof::bench
