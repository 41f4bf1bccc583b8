#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/append.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {

using graph::OpKind;

namespace {

// The shape with the extent that an extent of -1 stands for.
Shape resolve_extent(const Tensor& x, const Shape& shape) {
  std::vector<Dim> dims(shape.dims().begin(), shape.dims().end());
  Dim* unknown = nullptr;
  Dim known = 1;
  for (Dim& dim : dims) {
    if (!(dim == Dim(-1))) {
      known = known * dim;
    } else if (unknown == nullptr) {
      unknown = &dim;
    } else {
      throw GraphError(
          fmt::format("reshape: shape {} has more than one extent of -1", shape.text()));
    }
  }
  if (unknown != nullptr) {
    const Dim count = x.shape().element_count();
    try {
      *unknown = count / known;
    } catch (const GraphError&) {
      throw GraphError(fmt::format("reshape: {} elements of x {} do not fill {}", count.text(),
                                   x.shape().text(), shape.text()));
    }
  }
  return Shape(std::move(dims));
}

void take_rank(std::string_view op, const Tensor& x, int rank, std::string_view axes) {
  if (x && x.shape().rank() != rank) {
    throw GraphError(fmt::format("{}: x {} has rank {}, it takes {}", op, x.shape().text(),
                                 x.shape().rank(), axes));
  }
}

}  // namespace

Tensor Graph::reshape(const Tensor& x, const Shape& shape) {
  return append_one(
      {.kind = OpKind::Reshape, .attributes = {{"shape", x ? resolve_extent(x, shape) : shape}}},
      {x});
}

Tensor Graph::transpose(const Tensor& x, std::span<const int> permutation) {
  std::vector<std::int64_t> axes;
  for (const int axis : permutation) {
    axes.push_back(x && axis < 0 ? axis + x.shape().rank() : axis);
  }
  return append_one({.kind = OpKind::Transpose, .attributes = {{"permutation", std::move(axes)}}},
                    {x});
}

Tensor Graph::transpose(const Tensor& x, std::initializer_list<int> permutation) {
  return transpose(x, std::span(permutation.begin(), permutation.size()));
}

Tensor Graph::slice(const Tensor& x, int axis, const Dim& start, const Dim& length) {
  const std::int64_t from_front = x && axis < 0 ? axis + x.shape().rank() : axis;
  return append_one({.kind = OpKind::Slice,
                     .attributes = {{"axis", from_front}, {"start", start}, {"length", length}}},
                    {x});
}

Tensor Graph::broadcast(const Tensor& x, const Shape& shape) {
  return append_one({.kind = OpKind::Broadcast, .attributes = {{"shape", shape}}}, {x});
}

Tensor Graph::split_heads(const Tensor& x, std::int64_t heads) {
  id("split_heads", "x", x);
  take_rank("split_heads", x, 3, "[batch, seq, heads * head_dim]");
  const Shape& shape = x.shape();
  if (heads < 1 || !shape[2].divisible_by(heads)) {
    throw GraphError(fmt::format("split_heads: {} heads do not divide the {} channels of x {}",
                                 heads, shape[2].text(), shape.text()));
  }
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

Tensor Graph::merge_heads(const Tensor& x) {
  id("merge_heads", "x", x);
  take_rank("merge_heads", x, 4, "[batch, heads, seq, head_dim]");
  const Shape& shape = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

QkvHeads Graph::split_qkv(const Tensor& x, const SplitHeads& options) {
  id("split_qkv", "x", x);
  take_rank("split_qkv", x, 3, "[batch, seq, (heads + 2 kv_heads) * head_dim]");
  constexpr std::int64_t kMaxHeads = 1 << 20;
  const std::int64_t heads = options.heads;
  const std::int64_t kv_heads = options.kv_heads == 0 ? heads : options.kv_heads;
  if (heads < 1 || heads > kMaxHeads || kv_heads < 1 || heads % kv_heads != 0) {
    throw GraphError(
        heads < 1 ? fmt::format("split_qkv: heads is {}, the least is 1", heads)
                  : fmt::format("split_qkv: {} kv_heads do not divide {} heads", kv_heads, heads));
  }
  const Dim& channels = x.shape()[2];
  const std::int64_t all_heads = heads + 2 * kv_heads;
  if (!channels.divisible_by(all_heads)) {
    throw GraphError(
        fmt::format("split_qkv: {} + 2 * {} heads do not divide the {} channels of x {}", heads,
                    kv_heads, channels.text(), x.shape().text()));
  }
  const Dim head_dim = channels / all_heads;
  const Dim q_size = head_dim * heads;
  const Dim kv_size = head_dim * kv_heads;
  return {.q = split_heads(slice(x, 2, 0, q_size), heads),
          .k = split_heads(slice(x, 2, q_size, kv_size), kv_heads),
          .v = split_heads(slice(x, 2, q_size + kv_size, kv_size), kv_heads)};
}

}  // namespace stof
