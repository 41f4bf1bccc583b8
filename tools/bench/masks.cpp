#include "masks.hpp"

#include <algorithm>
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

}  // namespace

Mask mask(std::string_view name, std::int64_t n) {
  const std::int64_t width = square_root(n);
  if (name == "full") {
    return {};
  }
  if (name == "causal") {
    return causal();
  }
  if (name == "sliding") {
    return sliding_window(width, width);
  }
  if (name == "dilated") {
    return dilated(width, width, 2);
  }
  if (name == "longformer") {
    return longformer(width, width) || global_tokens(n / 2, width);
  }
  if (name == "bigbird") {
    return bigbird_of_tokens(n);
  }
  if (name == "bigbird_block") {
    return bigbird(64, 3, 2, 3, 3);
  }
  if (name == "doc_causal") {
    return documents(document_offsets(n)) && causal();
  }
  if (name == "window") {
    return sliding_window(1023, 0);
  }
  if (name == "random1") {
    return random_tokens(0.01, 4) || Mask(query_position() == key_position());
  }
  throw std::invalid_argument("no bench mask " + std::string(name));
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
