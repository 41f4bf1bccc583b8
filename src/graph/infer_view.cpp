#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/inference.hpp"

namespace stof::graph {

namespace {

constexpr std::size_t kMaxShownAxes = 16;

}  // namespace

std::vector<TensorType> infer_reshape(const Inference& inference) {
  const auto& shape = attribute<Shape>(inference.op(), "shape");
  check_shape("reshape: shape", shape);
  const Dim from = inference.shape(0).element_count();
  const Dim to = shape.element_count();
  if (!(from == to)) {
    inference.fail("{} has {} elements, {} has {}", inference.text(0), from.text(), shape.text(),
                   to.text());
  }
  return {{shape, inference.dtype(0)}};
}

std::vector<TensorType> infer_transpose(const Inference& inference) {
  const Shape& shape = inference.shape(0);
  const auto& permutation = attribute<std::vector<std::int64_t>>(inference.op(), "permutation");
  std::vector<bool> is_seen(static_cast<std::size_t>(shape.rank()));
  std::vector<Dim> dims;
  for (const std::int64_t axis : permutation) {
    if (axis < 0 || axis >= shape.rank() || is_seen[static_cast<std::size_t>(axis)]) {
      break;
    }
    is_seen[static_cast<std::size_t>(axis)] = true;
    dims.push_back(shape[static_cast<int>(axis)]);
  }
  if (dims.size() != permutation.size() || dims.size() != is_seen.size()) {
    const std::size_t shown = std::min(permutation.size(), kMaxShownAxes);
    inference.fail("({}) is no permutation of the {} axes of {}",
                   fmt::join(permutation.begin(), permutation.begin() + shown, ", "), shape.rank(),
                   inference.text(0));
  }
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

std::vector<TensorType> infer_slice(const Inference& inference) {
  const Shape& shape = inference.shape(0);
  const int axis = inference.take_axis(shape.rank());
  const auto& start = attribute<Dim>(inference.op(), "start");
  const auto& length = attribute<Dim>(inference.op(), "length");
  const bool is_inside =
      start.min() >= 0 && length.min() >= 0 && (shape[axis] - (start + length)).min() >= 0;
  if (!is_inside) {
    inference.fail("{} entries from {} on leave axis {} of {}", length.text(), start.text(), axis,
                   inference.text(0));
  }
  std::vector<Dim> dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<std::size_t>(axis)] = length;
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

std::vector<TensorType> infer_broadcast(const Inference& inference) {
  const auto& shape = attribute<Shape>(inference.op(), "shape");
  check_shape("broadcast: shape", shape);
  const std::optional<Shape> together = broadcast_shape(inference.shape(0), shape);
  if (!together || !(*together == shape)) {
    inference.fail("{} does not broadcast to {}", inference.text(0), shape.text());
  }
  return {{shape, inference.dtype(0)}};
}

}  // namespace stof::graph
