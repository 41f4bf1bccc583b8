// The masks of the literature, as expressions.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expr/table.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"
#include "stof/mask.hpp"

namespace stof {

namespace {

using mask::kMaxLength;

constexpr std::int64_t kMaxRandomBlocks = 256;                    // a row of blocks
constexpr std::int64_t kMaxTableEntries = std::int64_t{1} << 24;  // of tokens, 128 MiB

void check_range(std::string_view maker, std::string_view argument, std::int64_t value,
                 std::int64_t min, std::int64_t max = kMaxLength) {
  if (value < min || value > max) {
    throw GraphError(
        fmt::format("mask: {}: {} {} is not in {} to {}", maker, argument, value, min, max));
  }
}

// Named after its values too, so that one expression may hold several.
Table make_table(std::string_view name, std::vector<std::int64_t> values) {
  const Table unnamed("t", values);
  return {fmt::format("{}_{}", name, unnamed.data().digest.hex().substr(0, 16)), std::move(values)};
}

Expr is_global(const Expr& position, std::int64_t first, std::int64_t count) {
  return first == 0 ? position < count : position >= first && position < first + count;
}

// Whether key block `key` is one of those drawn for query block `query`.
Expr is_drawn(const Expr& query, const Expr& key, const Expr& blocks, std::int64_t per_row,
              std::int64_t seed) {
  Expr drawn = key == draw(seed, query, 0, blocks);
  for (std::int64_t i = 1; i < per_row; ++i) {
    drawn = drawn || key == draw(seed, query, i, blocks);
  }
  return drawn;
}

void check_offsets(std::string_view maker, std::span<const std::int32_t> cu_seqlens) {
  if (cu_seqlens.size() < 2) {
    throw GraphError(fmt::format("mask: {}: {} offsets; there must be a start and an end", maker,
                                 cu_seqlens.size()));
  }
  if (cu_seqlens.front() != 0) {
    throw GraphError(
        fmt::format("mask: {}: the first offset is {}, not 0", maker, cu_seqlens.front()));
  }
  for (std::size_t i = 1; i < cu_seqlens.size(); ++i) {
    if (cu_seqlens[i] < cu_seqlens[i - 1]) {
      throw GraphError(fmt::format("mask: {}: offset {} is {}, after {}; offsets ascend", maker, i,
                                   cu_seqlens[i], cu_seqlens[i - 1]));
    }
  }
  check_range(maker, "the total length", cu_seqlens.back(), 1, kMaxTableEntries);
}

// The document of each token.
Table document_table(std::span<const std::int32_t> cu_seqlens) {
  std::vector<std::int64_t> documents(cu_seqlens.back());
  for (std::size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    std::fill(documents.begin() + cu_seqlens[i], documents.begin() + cu_seqlens[i + 1],
              static_cast<std::int64_t>(i));
  }
  return make_table(mask::kDocumentTable, std::move(documents));
}

const Expr& q() {
  static const Expr position = query_position();
  return position;
}

const Expr& k() {
  static const Expr position = key_position();
  return position;
}

}  // namespace

Mask causal() {
  return k() <= q();
}

Mask causal_bottom_right() {
  return k() - (key_length() - query_length()) <= q();
}

Mask sliding_window(std::int64_t left, std::int64_t right) {
  check_range("sliding_window", "left", left, 0);
  check_range("sliding_window", "right", right, 0);
  return q() - k() <= left && k() - q() <= right;
}

Mask dilated(std::int64_t left, std::int64_t right, std::int64_t dilation) {
  check_range("dilated", "dilation", dilation, 1);
  check_range("dilated", "left", left, 0, kMaxLength / dilation);
  check_range("dilated", "right", right, 0, kMaxLength / dilation);
  return q() - k() <= left * dilation && k() - q() <= right * dilation &&
         (q() - k()) % dilation == 0;
}

Mask strided(std::int64_t stride) {
  check_range("strided", "stride", stride, 1);
  return (q() - k()) % stride == 0;
}

Mask global_tokens(std::int64_t count) {
  return global_tokens(0, count);
}

Mask global_tokens(std::int64_t first, std::int64_t count) {
  check_range("global_tokens", "first", first, 0);
  check_range("global_tokens", "count", count, 0);
  return is_global(q(), first, count) || is_global(k(), first, count);
}

Mask random_tokens(double fraction, std::int64_t seed) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw GraphError(fmt::format("mask: random_tokens: fraction {} is not in 0 to 1", fraction));
  }
  return keep(seed, q(), k(), fraction);
}

Mask random_blocks(std::int64_t block_size, std::int64_t per_row, std::int64_t seed) {
  check_range("random_blocks", "block_size", block_size, 1);
  check_range("random_blocks", "per_row", per_row, 1, kMaxRandomBlocks);
  return is_drawn(q() / block_size, k() / block_size, ceil_div(key_length(), block_size), per_row,
                  seed);
}

Mask longformer(std::int64_t window, std::int64_t globals) {
  check_range("longformer", "window", window, 0);
  check_range("longformer", "globals", globals, 0);
  return sliding_window(window, window) || global_tokens(globals);
}

Mask bigbird(std::int64_t block_size, std::int64_t window_blocks, std::int64_t global_blocks,
             std::int64_t random_per_row, std::int64_t seed) {
  check_range("bigbird", "block_size", block_size, 1);
  check_range("bigbird", "window_blocks", window_blocks, 1);
  check_range("bigbird", "global_blocks", global_blocks, 0);
  check_range("bigbird", "random_per_row", random_per_row, 0, kMaxRandomBlocks);
  if (window_blocks % 2 == 0) {
    throw GraphError(fmt::format(
        "mask: bigbird: window_blocks {} is even; a block has as many neighbours on each side",
        window_blocks));
  }
  const Expr query = q() / block_size;
  const Expr key = k() / block_size;
  const Expr near =
      abs(query - key) <= window_blocks / 2 || query < global_blocks || key < global_blocks;
  return random_per_row == 0 ? near
                             : near || is_drawn(query, key, ceil_div(key_length(), block_size),
                                                random_per_row, seed);
}

Mask prefix(std::int64_t length) {
  check_range("prefix", "length", length, 0);
  return k() <= q() || k() < length;
}

Mask documents(std::span<const std::int32_t> cu_seqlens) {
  check_offsets("documents", cu_seqlens);
  const Table document = document_table(cu_seqlens);
  return document[q()] == document[k()];
}

Mask documents(std::initializer_list<std::int32_t> cu_seqlens) {
  return documents(std::span(cu_seqlens.begin(), cu_seqlens.size()));
}

Mask share_question(std::span<const std::int32_t> cu_seqlens) {
  check_offsets("share_question", cu_seqlens);
  const Table document = document_table(cu_seqlens);
  return k() <= q() && (document[q()] == document[k()] || k() < cu_seqlens[1]);
}

Mask block_causal(std::int64_t block_size) {
  check_range("block_causal", "block_size", block_size, 1);
  return k() / block_size <= q() / block_size;
}

Mask window_2d(std::int64_t width, std::int64_t radius) {
  check_range("window_2d", "width", width, 1);
  check_range("window_2d", "radius", radius, 0);
  return abs(q() / width - k() / width) <= radius && abs(q() % width - k() % width) <= radius;
}

Mask key_padding(std::span<const std::int64_t> kv_lengths) {
  check_range("key_padding", "the number of lengths", std::ssize(kv_lengths), 1, kMaxTableEntries);
  for (std::size_t i = 0; i < kv_lengths.size(); ++i) {
    check_range("key_padding", fmt::format("length {}:", i), kv_lengths[i], 0);
  }
  return k() <
         make_table(mask::kLengthTable, {kv_lengths.begin(), kv_lengths.end()})[batch_index()];
}

Mask key_padding(const Capture& keep) {
  if (keep.rank() != 2) {
    throw GraphError(fmt::format("mask: key_padding: {} has rank {}; it must be [batch, kv_len]",
                                 keep.name(), keep.rank()));
  }
  if (keep.type() == ScalarType::Float) {
    throw GraphError(fmt::format("mask: key_padding: {} is {}, not an integer or bool", keep.name(),
                                 name(keep.dtype())));
  }
  const Expr entry = keep(batch_index(), k());
  return keep.type() == ScalarType::Bool ? entry : entry != 0;
}

}  // namespace stof
