#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/inference.hpp"

namespace stof::graph {

std::vector<TensorType> infer_reduction(const Inference& inference) {
  inference.take_floating(0);
  const Shape& shape = inference.shape(0);
  const int axis = inference.take_axis(shape.rank());
  std::vector<Dim> dims(shape.dims().begin(), shape.dims().end());
  if (attribute<bool>(inference.op(), "keep_axis")) {
    dims[static_cast<std::size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

std::vector<TensorType> infer_embedding(const Inference& inference) {
  inference.take_axes(0, 2, "[vocabulary, hidden]");
  if (inference.dtype(1) != DType::Int32 && inference.dtype(1) != DType::Int64) {
    inference.fail("ids is {}, it takes int32 or int64", name(inference.dtype(1)));
  }
  if (inference.shape(0)[0].min() < 1) {
    inference.fail("{} may have no row", inference.text(0));
  }
  const Shape& ids = inference.shape(1);
  std::vector<Dim> dims(ids.dims().begin(), ids.dims().end());
  dims.push_back(inference.shape(0)[1]);
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

namespace {

// The axis of x before the last counts positions; what is left of it begins with the batch.
void check_rotary_positions(const Inference& inference) {
  const auto position = attribute<std::int64_t>(inference.op(), "position");
  if (position < 0 || position > std::numeric_limits<std::int32_t>::max()) {
    inference.fail("position {} is not in 0 to 2147483647", position);
  }
  if (!inference.has(1)) {
    return;
  }
  if (position != 0) {
    inference.fail("it takes positions or position {}, not both", position);
  }
  inference.take_dtype(1, DType::Int32);
  const Shape& x = inference.shape(0);
  const Shape& positions = inference.shape(1);
  const Dim batch = x.rank() > 2 ? x[0] : Dim(1);
  const bool fits = (positions.rank() == 1 || (positions.rank() == 2 && positions[0] == batch)) &&
                    positions[-1] == x[-2];
  if (!fits) {
    inference.fail("{} is neither [{}] nor [{}, {}], as {} asks", inference.text(1), x[-2].text(),
                   batch.text(), x[-2].text(), inference.text(0));
  }
}

void check_turns(const Inference& inference, std::int64_t head_dim) {
  const auto rotary_dim = attribute<std::int64_t>(inference.op(), "rotary_dim");
  if (rotary_dim < 2 || rotary_dim % 2 != 0 || rotary_dim > head_dim) {
    inference.fail("rotary_dim {} is not an even number from 2 to the head_dim of {}", rotary_dim,
                   inference.text(0));
  }
  inference.take_finite("theta");
  if (attribute<double>(inference.op(), "theta") <= 0) {
    inference.fail("theta {} is not positive", attribute<double>(inference.op(), "theta"));
  }
  const auto& style = attribute<std::string>(inference.op(), "style");
  if (!rotary_style_from_name(style)) {
    inference.fail("style \"{}\" is neither half nor interleaved", style.substr(0, 40));
  }
  check_rotary_positions(inference);
}

}  // namespace

std::vector<TensorType> infer_rotary(const Inference& inference) {
  inference.take_floating(0);
  inference.take_axes(0, 4, "[batch, heads, seq, head_dim]");
  check_turns(inference, inference.shape(0)[3].min());
  return {inference.like(0)};
}

std::vector<TensorType> infer_rotary_heads(const Inference& inference) {
  inference.take_floating(0);
  const Shape& x = inference.shape(0);
  if (x.rank() != 2 && x.rank() != 3) {
    inference.fail("{} is neither [seq, channels] nor [batch, seq, channels]", inference.text(0));
  }
  const auto head_dim = attribute<std::int64_t>(inference.op(), "head_dim");
  const auto heads = attribute<std::int64_t>(inference.op(), "heads");
  if (head_dim < 1 || heads < 0 || heads > x[-1].min() / head_dim) {
    inference.fail("{} heads of {} channels are not part of {}", heads, head_dim,
                   inference.text(0));
  }
  check_turns(inference, head_dim);
  return {inference.like(0)};
}

std::vector<TensorType> infer_patches(const Inference& inference) {
  inference.take_axes(0, 4, "[batch, channels, height, width]");
  const Shape& images = inference.shape(0);
  const auto size = attribute<std::int64_t>(inference.op(), "size");
  if (size < 1) {
    inference.fail("size {} is below 1", size);
  }
  for (const int axis : {2, 3}) {
    if (!images[axis].divisible_by(size)) {
      inference.fail("size {} does not divide {} of {}", size, images[axis].text(),
                     inference.text(0));
    }
  }
  return {
      {Shape{images[0], (images[2] / size) * (images[3] / size), images[1] * (Dim(size) * size)},
       inference.dtype(0)}};
}

std::vector<TensorType> infer_concat(const Inference& inference) {
  const Shape& first = inference.shape(0);
  const int axis = inference.take_axis(first.rank());
  std::vector<Dim> dims(first.dims().begin(), first.dims().end());
  for (int i = 1; i < inference.input_count(); ++i) {
    inference.take_same_dtype(i, 0);
    inference.take_rank(i, first.rank());
    for (int other = 0; other < first.rank(); ++other) {
      if (other != axis && !(inference.shape(i)[other] == first[other])) {
        inference.fail("{} and {} differ in axis {}, not only in axis {}", inference.text(0),
                       inference.text(i), other, axis);
      }
    }
    Dim& sum = dims[static_cast<std::size_t>(axis)];
    sum = sum + inference.shape(i)[axis];
  }
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

}  // namespace stof::graph
