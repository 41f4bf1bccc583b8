#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "mask/evaluate.hpp"
#include "mask/extent.hpp"
#include "stof/mask.hpp"

// Masks with what they mean, pair by pair, in plain C++.
namespace stof::test {

using Sees = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)>;

struct MaskCase {
  Mask mask;
  Sees sees;
};

// The truth values of a tensor [batch, heads, rows, columns], one byte each.
struct Bytes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> values;

  bool at(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return values[(((batch == 1 ? 0 : b) * heads + (heads == 1 ? 0 : h)) * rows + r) * columns +
                  c] != 0;
  }
  TensorView view() {
    return {.data = values.data(),
            .dtype = DType::UInt8,
            .shape = {batch, heads, rows, columns},
            .strides = {}};
  }
};

// The first pair on which the mask and its meaning differ, or nothing.
inline std::string first_difference(const MaskCase& c, const mask::Extent& extent) {
  const mask::BitTensor bits = mask::evaluate_all(c.mask, extent);
  for (std::int64_t b = 0; b < extent.batch; ++b) {
    for (std::int64_t h = 0; h < extent.heads; ++h) {
      for (std::int64_t q = 0; q < extent.q_len; ++q) {
        for (std::int64_t k = 0; k < extent.kv_len; ++k) {
          if (bits.at(b, h, q, k) != c.sees(b, h, q, k)) {
            return fmt::format("({}, {}, {}, {})", b, h, q, k);
          }
        }
      }
    }
  }
  return {};
}

// The lengths at which tiles begin, end and hang over.
inline std::vector<mask::Extent> hostile_extents() {
  return {{.batch = 1, .heads = 1, .q_len = 1, .kv_len = 1},
          {.batch = 1, .heads = 2, .q_len = 63, .kv_len = 64},
          {.batch = 2, .heads = 1, .q_len = 64, .kv_len = 63},
          {.batch = 1, .heads = 1, .q_len = 65, .kv_len = 65},
          {.batch = 2, .heads = 3, .q_len = 1, .kv_len = 130},
          {.batch = 1, .heads = 1, .q_len = 192, .kv_len = 8},
          {.batch = 1, .heads = 1, .q_len = 129, .kv_len = 1000},
          {.batch = 1, .heads = 1, .q_len = 500, .kv_len = 77}};
}

// Random masks for one attention. The same seed gives the same ones.
class RandomMask {
 public:
  RandomMask(unsigned seed, const mask::Extent& extent) : random_(seed), extent_(extent) {}

  MaskCase next(int depth = 2) {
    if (depth == 0 || below(4) == 0) {
      return leaf();
    }
    const MaskCase a = next(depth - 1);
    if (below(5) == 0) {
      return {!a.mask, [a](auto... at) { return !a.sees(at...); }};
    }
    const MaskCase b = next(depth - 1);
    if (below(2) == 0) {
      return {a.mask && b.mask, [a, b](auto... at) { return a.sees(at...) && b.sees(at...); }};
    }
    return {a.mask || b.mask, [a, b](auto... at) { return a.sees(at...) || b.sees(at...); }};
  }

  // [0, count)
  std::int64_t below(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }

  // 1 for each pair with a chance of one in `rarity`, in stretches where `runs`.
  Bytes bytes(std::int64_t rows, std::int64_t columns, std::int64_t rarity, bool runs) {
    Bytes bytes{.batch = below(2) == 0 ? 1 : extent_.batch,
                .heads = below(2) == 0 ? 1 : extent_.heads,
                .rows = rows,
                .columns = columns,
                .values = {}};
    bytes.values.resize(bytes.batch * bytes.heads * rows * columns);
    std::int64_t left = 0;
    std::uint8_t value = 0;
    for (std::uint8_t& byte : bytes.values) {
      if (left-- == 0) {
        left = runs ? below(300) : 0;
        value = static_cast<std::uint8_t>(below(rarity) == 0 ? 1 + below(255) : 0);
      }
      byte = value;
    }
    return bytes;
  }

 private:
  MaskCase leaf() {
    switch (below(10)) {
      case 0:
        return window();
      case 1:
        return strided_by_batch();
      case 2:
        return by_head();
      case 3:
        return block_rows();
      case 4:
        return padding();
      case 5:
        return constant();
      case 6:
      case 7:
        return dense();
      case 8:
        return csr();
      default:
        return blocks();
    }
  }

  MaskCase window() {
    const std::int64_t left = below(200);
    const std::int64_t right = below(100);
    return {sliding_window(left, right),
            [=](auto, auto, auto q, auto k) { return k >= q - left && k <= q + right; }};
  }

  MaskCase strided_by_batch() {
    const std::int64_t stride = 1 + below(5);
    const Expr steps = query_position() + key_position() * stride + batch_index();
    return {Mask(steps % (stride + 1) != 0),
            [=](auto b, auto, auto q, auto k) { return (q + k * stride + b) % (stride + 1) != 0; }};
  }

  MaskCase by_head() {
    const std::int64_t width = 1 + below(90);
    return {Mask(key_position() < (head_index() + 1) * width),
            [=](auto, auto h, auto, auto k) { return k < (h + 1) * width; }};
  }

  MaskCase block_rows() {
    const std::int64_t size = 1 + below(100);
    return {block_causal(size), [=](auto, auto, auto q, auto k) { return k / size <= q / size; }};
  }

  MaskCase padding() {
    std::vector<std::int64_t> lengths(extent_.batch);
    for (std::int64_t& length : lengths) {
      length = below(extent_.kv_len + 20);
    }
    return {key_padding(lengths), [lengths](auto b, auto, auto, auto k) { return k < lengths[b]; }};
  }

  MaskCase constant() {
    const bool all = below(2) == 0;
    return {Mask(all), [all](auto...) { return all; }};
  }

  MaskCase dense() {
    Bytes keep = bytes(extent_.q_len, extent_.kv_len, 1 + below(20), below(2) == 0);
    return {Mask::dense(keep.view()), [keep](auto... at) { return keep.at(at...); }};
  }

  MaskCase csr() {
    Bytes keep = bytes(extent_.q_len, extent_.kv_len, 1 + below(50), below(2) == 0);
    std::vector<std::int32_t> row_ptr = {0};
    std::vector<std::int32_t> col_idx;
    for (std::int64_t q = 0; q < extent_.q_len; ++q) {
      for (std::int64_t k = 0; k < extent_.kv_len; ++k) {
        if (keep.at(0, 0, q, k)) {
          col_idx.push_back(static_cast<std::int32_t>(k));
        }
      }
      row_ptr.push_back(static_cast<std::int32_t>(col_idx.size()));
    }
    return {Mask::csr(row_ptr, col_idx, extent_.kv_len),
            [keep](auto, auto, auto q, auto k) { return keep.at(0, 0, q, k); }};
  }

  MaskCase blocks() {
    const auto size = 1 + below(100);
    Bytes keep =
        bytes((extent_.q_len + size - 1) / size, (extent_.kv_len + size - 1) / size, 2, false);
    return {Mask::blocks(keep.view(), static_cast<int>(size), extent_.q_len, extent_.kv_len),
            [=](auto b, auto h, auto q, auto k) { return keep.at(b, h, q / size, k / size); }};
  }

  std::mt19937_64 random_;
  mask::Extent extent_;
};

}  // namespace stof::test
