#include "graph/view.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "graph/op_info.hpp"
#include "stof/graph.hpp"

namespace stof::graph {
namespace {

using Indices = std::vector<std::int64_t>;

std::int64_t count(const Indices& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// The coordinates of a row-major position.
Indices unravel(std::int64_t position, const Indices& sizes) {
  Indices coordinates(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    coordinates[axis] = position % sizes[axis];
    position /= sizes[axis];
  }
  return coordinates;
}

std::int64_t ravel(const Indices& coordinates, const Indices& sizes) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    position = position * sizes[axis] + coordinates[axis];
  }
  return position;
}

// Which element of the root each element of a value is, by the definition of every view.
Indices elements(const Ir& ir, int id) {
  const Value& value = *ir.values[static_cast<std::size_t>(id)];
  const Indices sizes = value.shape.sizes();
  Indices result(static_cast<std::size_t>(count(sizes)));
  const Operator* op =
      value.producer < 0 ? nullptr : &ir.operators[static_cast<std::size_t>(value.producer)];
  if (op == nullptr || op_info(op->kind).op_class != OpClass::View) {
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  const Indices from = elements(ir, op->inputs[0]);
  const Indices from_sizes = ir.values[static_cast<std::size_t>(op->inputs[0])]->shape.sizes();
  for (std::int64_t i = 0; i < std::ssize(result); ++i) {
    const Indices at = unravel(i, sizes);
    Indices source(from_sizes.size());
    if (op->kind == OpKind::Reshape) {
      source = unravel(i, from_sizes);
    } else if (op->kind == OpKind::Transpose) {
      const auto& permutation = attribute<Indices>(*op, "permutation");
      for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
        source[static_cast<std::size_t>(permutation[axis])] = at[axis];
      }
    } else if (op->kind == OpKind::Slice) {
      source = at;
      source[static_cast<std::size_t>(attribute<std::int64_t>(*op, "axis"))] +=
          attribute<Dim>(*op, "start").value();
    } else {
      for (std::size_t axis = 0; axis < source.size(); ++axis) {
        const std::size_t own = axis + sizes.size() - source.size();
        source[axis] = from_sizes[axis] == 1 ? 0 : at[own];
      }
    }
    result[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(ravel(source, from_sizes))];
  }
  return result;
}

// The same by strides.
Indices elements(const StridedView& view, const Indices& sizes) {
  Indices result;
  for (std::int64_t i = 0; i < count(sizes); ++i) {
    std::int64_t position = view.offset.value();
    const Indices at = unravel(i, sizes);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      position += at[axis] * view.strides[axis].value();
    }
    result.push_back(position);
  }
  return result;
}

int id_of(const Graph& graph, const Tensor& tensor) {
  return graph.ir().ids.at(tensor.name());
}

std::vector<Dim> strides(std::initializer_list<Dim> dims) {
  return dims;
}

TEST_CASE("view: q, k and v are read in place") {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 512);
  const Tensor x = graph.input("x", {8, seq, 3 * 64}, DType::Float16);
  const QkvHeads heads = graph.split_qkv(x, {.heads = 4});
  const auto q = strided_view(graph.ir(), id_of(graph, heads.q));
  const auto v = strided_view(graph.ir(), id_of(graph, heads.v));
  REQUIRE(q);
  REQUIRE(v);
  CHECK(q->root == 0);
  CHECK(q->offset == Dim(0));
  CHECK(q->strides == strides({seq * 192, 16, 192, 1}));
  CHECK(v->offset == Dim(128));
  CHECK(v->strides == q->strides);
}

TEST_CASE("view: what no view makes is its own root") {
  Graph graph;
  const Tensor y = graph.relu(graph.input("x", {2, 3}, DType::Float16));
  const auto view = strided_view(graph.ir(), id_of(graph, y));
  REQUIRE(view);
  CHECK(view->root == 1);
  CHECK(view->strides == strides({3, 1}));
}

TEST_CASE(
    "view: merged heads are no strides of the attention's rows, but it can write them in place") {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 512);
  const Tensor x = graph.input("x", {8, 12, seq, 64}, DType::Float16);
  const int merged = id_of(graph, graph.merge_heads(x));
  CHECK_FALSE(strided_view(graph.ir(), merged));
  const auto root = root_for_contiguous(graph.ir(), merged);
  REQUIRE(root);
  CHECK(root->root == 0);
  CHECK(root->strides == strides({seq * 768, 64, 768, 1}));
  const int slice = id_of(graph, graph.slice(x, 0, 0, 1));
  CHECK_FALSE(root_for_contiguous(graph.ir(), slice));
}

TEST_CASE("view: broadcast repeats with strides of 0") {
  Graph graph;
  const Tensor x = graph.input("x", {3, 1}, DType::Float16);
  const auto view = strided_view(graph.ir(), id_of(graph, graph.broadcast(x, {2, 3, 4})));
  REQUIRE(view);
  CHECK(view->strides == strides({0, 1, 0}));
}

TEST_CASE("view: reshape of symbolic extents") {
  const Dim batch = Dim::symbol("batch", 1, 8);
  const Dim seq = Dim::symbol("seq", 1, 8);
  const Shape from{batch, seq, 6};
  const auto joined = reshape_strides(from, contiguous_strides(from), {batch * seq, 2, 3});
  REQUIRE(joined);
  CHECK(*joined == strides({6, 3, 1}));
  const std::vector<Dim> gap = {seq * 12, 12, 1};
  CHECK(reshape_strides(from, gap, {batch * seq, 6}) == strides({12, 1}));
  const std::vector<Dim> gaps = {seq * 12 + 1, 12, 1};
  CHECK_FALSE(reshape_strides(from, gaps, {batch * seq, 6}));
  CHECK(reshape_strides({0, 3}, strides({3, 1}), {3, 0}) == strides({0, 1}));
}

Tensor random_view(Graph& graph, const Tensor& x, std::mt19937_64& random) {
  const Indices sizes = x.shape().sizes();
  const auto rank = static_cast<int>(sizes.size());
  const auto draw = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  switch (draw(4)) {
    case 0: {
      std::vector<int> permutation(sizes.size());
      std::iota(permutation.begin(), permutation.end(), 0);
      std::ranges::shuffle(permutation, random);
      return graph.transpose(x, permutation);
    }
    case 1: {
      const int axis = static_cast<int>(draw(rank));
      const std::int64_t size = sizes[static_cast<std::size_t>(axis)];
      const std::int64_t start = draw(size);
      return graph.slice(x, axis, start, 1 + draw(size - start));
    }
    case 2: {
      Indices to = sizes;
      if (rank < 4) {
        to.insert(to.begin(), 1 + draw(2));
      }
      for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        auto& size = to[axis + to.size() - sizes.size()];
        size = size == 1 ? 1 + draw(3) : size;
      }
      return graph.broadcast(x, Shape::of(to));
    }
    default: {
      // Joins all axes, then splits off divisors.
      Indices to;
      std::int64_t left = count(sizes);
      for (int axis = 0; axis < 3; ++axis) {
        std::int64_t divisor = 1 + draw(left);
        while (left % divisor != 0) {
          --divisor;
        }
        to.push_back(divisor);
        left /= divisor;
      }
      to.push_back(left);
      return graph.reshape(x, Shape::of(to));
    }
  }
}

TEST_CASE("view: strides reach the elements that the views define") {
  std::mt19937_64 random(7);
  int strided = 0;
  int inverted = 0;
  for (int round = 0; round < 1000; ++round) {
    Graph graph;
    Tensor x = graph.input("x", {2, 3, 4}, DType::Float32);
    const auto steps = static_cast<int>(random() % 4);
    for (int i = 0; i <= steps && x.shape().element_count().value() <= 2000; ++i) {
      x = random_view(graph, x, random);
    }
    const int id = id_of(graph, x);
    const Indices defined = elements(graph.ir(), id);
    if (const auto view = strided_view(graph.ir(), id)) {
      ++strided;
      CHECK(elements(*view, x.shape().sizes()) == defined);
    }
    if (const auto root = root_for_contiguous(graph.ir(), id)) {
      ++inverted;
      const Indices written = elements(*root, {2, 3, 4});
      for (std::size_t i = 0; i < defined.size(); ++i) {
        CHECK(written[static_cast<std::size_t>(defined[i])] == static_cast<std::int64_t>(i));
      }
    }
  }
  CHECK(strided > 500);
  CHECK(inverted > 100);
}

TEST_CASE("view: every reshape of a contiguous tensor is strides") {
  const Shape from{4, 6, 5};
  for (const Shape& to : {Shape{120}, Shape{3, 20, 2}, Shape{1, 12, 10}, Shape{2, 2, 1, 6, 5, 1}}) {
    CHECK(reshape_strides(from, contiguous_strides(from), to));
  }
}

}  // namespace
}  // namespace stof::graph
