#include "mask/node.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "expr/node.hpp"
#include "expr/transform.hpp"
#include "stof/error.hpp"

namespace stof::mask {

namespace {

void check_predicate(const Expr& predicate) {
  if (predicate.type() != ScalarType::Bool) {
    throw GraphError(fmt::format("mask: the predicate {} has the type {}, not bool",
                                 predicate.text(), expr::name_of(predicate.type())));
  }
  static const ExprNames known = mask_names();
  for (const auto& [name, type] : expr::names_used(predicate).scalars) {
    const auto found = known.scalars.find(name);
    if (found == known.scalars.end()) {
      throw GraphError(fmt::format(
          "mask: no scalar {}; masks have batch, head, q_pos, k_pos, q_len and kv_len", name));
    }
    if (type != found->second) {
      throw GraphError(
          fmt::format("mask: the scalar {} is of type {}, not int", name, expr::name_of(type)));
    }
  }
}

void check_blocks(const BlockData& data) {
  for (const std::int64_t size : {data.block_size, data.q_len, data.kv_len}) {
    if (size < 1 || size > kMaxLength) {
      throw GraphError(
          fmt::format("mask: blocks of {} for {} queries and {} keys; each must be in 1 to {}",
                      data.block_size, data.q_len, data.kv_len, kMaxLength));
    }
  }
  const std::int64_t rows = ceil_div(data.q_len, data.block_size);
  const std::int64_t columns = ceil_div(data.kv_len, data.block_size);
  if (data.keep.rows != rows || data.keep.columns != columns) {
    throw GraphError(fmt::format(
        "mask: block size {} cuts {} queries and {} keys into [{}, {}] blocks, not [{}, {}]",
        data.block_size, data.q_len, data.kv_len, rows, columns, data.keep.rows,
        data.keep.columns));
  }
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void hash_bits(const BitTensor& keep, base::Hasher& hasher) {
  for (const std::int64_t size : {keep.batch, keep.heads, keep.rows, keep.columns}) {
    hasher.update_integer(size);
  }
  hasher.update_sized(bytes_of(keep.words));
}

Mask finish(Node node) {
  return Mask(std::make_shared<const Node>(std::move(node)));
}

Mask data_mask(decltype(Node::form) form, const base::Digest& digest, const DataExtent& extent) {
  return finish({.form = std::move(form),
                 .digest = digest.hex(),
                 .uses_batch = extent.batch > 1,
                 .uses_head = extent.heads > 1,
                 .data = extent});
}

DataExtent extent_of(const BitTensor& keep, std::int64_t q_len, std::int64_t kv_len) {
  return {.batch = keep.batch, .heads = keep.heads, .lengths = std::pair(q_len, kv_len)};
}

std::int64_t common_extent(std::string_view what, std::int64_t a, std::int64_t b) {
  if (a != 1 && b != 1 && a != b) {
    throw GraphError(fmt::format("mask: data for {} {} and for {} cannot be combined", what, a, b));
  }
  return std::max(a, b);
}

DataExtent common(const DataExtent& a, const DataExtent& b) {
  if (a.lengths && b.lengths && *a.lengths != *b.lengths) {
    throw GraphError(
        fmt::format("mask: data of [{}, {}] and of [{}, {}] queries and keys cannot be combined",
                    a.lengths->first, a.lengths->second, b.lengths->first, b.lengths->second));
  }
  return {.batch = common_extent("batch", a.batch, b.batch),
          .heads = common_extent("heads", a.heads, b.heads),
          .lengths = a.lengths ? a.lengths : b.lengths};
}

}  // namespace

Mask make_mask(Expr predicate) {
  check_predicate(predicate);
  const ExprNames& names = expr::names_used(predicate);
  return finish({.form = predicate,
                 .digest = expr::digest(predicate).hex(),
                 .uses_batch = names.scalars.contains("batch"),
                 .uses_head = names.scalars.contains("head"),
                 .has_captures = !names.captures.empty()});
}

Mask make_mask(DenseData data) {
  base::Hasher hasher;
  hasher.update_sized("dense");
  hash_bits(data.keep, hasher);
  const DataExtent extent = extent_of(data.keep, data.keep.rows, data.keep.columns);
  return data_mask(std::move(data), hasher.digest(), extent);
}

Mask make_mask(BlockData data) {
  check_blocks(data);
  base::Hasher hasher;
  hasher.update_sized("blocks");
  for (const std::int64_t size : {data.block_size, data.q_len, data.kv_len}) {
    hasher.update_integer(size);
  }
  hash_bits(data.keep, hasher);
  const DataExtent extent = extent_of(data.keep, data.q_len, data.kv_len);
  return data_mask(std::move(data), hasher.digest(), extent);
}

Mask make_mask(CsrData data) {
  base::Hasher hasher;
  hasher.update_sized("csr");
  hasher.update_integer(data.kv_len);
  hasher.update_sized(bytes_of(data.row_ptr));
  hasher.update_sized(bytes_of(data.col_idx));
  const DataExtent extent = {.lengths = std::pair(std::ssize(data.row_ptr) - 1, data.kv_len)};
  return data_mask(std::move(data), hasher.digest(), extent);
}

Mask make_mask(Combination combination) {
  Node node{.form = std::move(combination)};
  const auto& [operation, operands] = std::get<Combination>(node.form);
  base::Hasher hasher;
  hasher.update_integer(static_cast<std::uint64_t>(operation));
  for (const Mask& operand : operands) {
    hasher.update_sized(operand.digest());
    node.uses_batch = node.uses_batch || operand.uses_batch();
    node.uses_head = node.uses_head || operand.uses_head();
    node.has_captures = node.has_captures || operand.has_captures();
    node.data = common(node.data, operand.node().data);
    node.depth = std::max(node.depth, operand.node().depth + 1);
    node.parts += operand.node().parts;
  }
  if (node.depth > kMaxDepth || node.parts > kMaxParts) {
    throw GraphError(
        fmt::format("mask: a combination of {} parts, {} deep; the limits are {} and {}",
                    node.parts, node.depth, kMaxParts, kMaxDepth));
  }
  node.digest = hasher.digest().hex();
  return finish(std::move(node));
}

}  // namespace stof::mask
