#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/inference.hpp"

namespace stof::graph {

namespace {

Shape leading(const Shape& shape, int count) {
  return Shape(std::vector<Dim>(shape.dims().begin(), shape.dims().begin() + count));
}

// The leading extents of b as those of a meet them: its heads are repeated `group` times.
Shape grouped_leading(const Inference& inference, const Shape& b) {
  Shape extents = leading(b, b.rank() - 2);
  const auto* group = find_attribute<std::int64_t>(inference.op(), "group");
  if (group == nullptr) {
    return extents;
  }
  if (*group < 1) {
    inference.fail("group {} is below 1", *group);
  }
  if (extents.rank() < 1) {
    inference.fail("{} has no heads for group {}", inference.text(1), *group);
  }
  std::vector<Dim> dims(extents.dims().begin(), extents.dims().end());
  dims.back() = dims.back() * Dim(*group);
  return Shape(std::move(dims));
}

void check_dtypes(const Inference& inference) {
  inference.take_floating(0);
  inference.take_floating(1);
  const DType* dtype = find_attribute<DType>(inference.op(), "dtype");
  if (dtype == nullptr) {
    inference.take_same_dtype(1, 0);
  } else if (!is_floating(*dtype)) {
    inference.fail("dtype {} is no float", name(*dtype));
  }
}

// For a weight whose shape fits the other layout only.
std::string_view other_layout_hint(bool is_out_in) {
  return is_out_in ? "; if it lies (in, out), give it .layout = WeightLayout::InOut"
                   : "; if it lies (out, in), give it .layout = WeightLayout::OutIn";
}

}  // namespace

std::vector<TensorType> infer_linear(const Inference& inference) {
  inference.take_floating(0);
  inference.take_same_dtype(1, 0);
  const Shape& x = inference.shape(0);
  const Shape& weight = inference.shape(1);
  if (x.rank() < 2) {
    inference.fail("{} has rank {}, it takes [..., rows, in]", inference.text(0), x.rank());
  }
  inference.take_rank(1, 2);
  const bool is_out_in = inference.in(1).layout == WeightLayout::OutIn;
  const std::string_view layout = is_out_in ? "(out, in)" : "(in, out)";
  const Dim& in = weight[is_out_in ? 1 : 0];
  const Dim& out = weight[is_out_in ? 0 : 1];
  if (!(x[-1] == in)) {
    const bool fits_turned = x[-1] == out && (!inference.has(2) || inference.shape(2) == Shape{in});
    inference.fail("{} ends in {}, {} {} takes {}{}", inference.text(0), x[-1].text(),
                   inference.text(1), layout, in.text(),
                   fits_turned ? other_layout_hint(is_out_in) : "");
  }
  if (inference.has(2)) {
    inference.take_same_dtype(2, 0);
    inference.take_rank(2, 1);
    if (!(inference.shape(2)[0] == out)) {
      inference.fail("{} {} gives {}, {} has {}", inference.text(1), layout, out.text(),
                     inference.text(2), inference.shape(2)[0].text());
    }
  }
  std::vector<Dim> dims(x.dims().begin(), x.dims().end());
  dims.back() = out;
  return {{Shape(std::move(dims)), inference.dtype(0)}};
}

std::vector<TensorType> infer_matmul(const Inference& inference) {
  check_dtypes(inference);
  for (const int position : {0, 1}) {
    if (inference.shape(position).rank() < 2) {
      inference.fail("{} has rank {}, it takes a matrix", inference.text(position),
                     inference.shape(position).rank());
    }
  }
  const Shape& a = inference.shape(0);
  const Shape& b = inference.shape(1);
  const bool transpose_a = attribute<bool>(inference.op(), "transpose_a");
  const bool transpose_b = attribute<bool>(inference.op(), "transpose_b");
  const Dim& inner_a = a[transpose_a ? -2 : -1];
  const Dim& inner_b = b[transpose_b ? -1 : -2];
  if (!(inner_a == inner_b)) {
    inference.fail("{}{} has {} columns, {}{} has {} rows", inference.text(0),
                   transpose_a ? " transposed" : "", inner_a.text(), inference.text(1),
                   transpose_b ? " transposed" : "", inner_b.text());
  }
  const std::optional<Shape> batch =
      broadcast_shape(leading(a, a.rank() - 2), grouped_leading(inference, b));
  if (!batch) {
    inference.fail("leading extents of {} and {} do not broadcast: they must be equal or 1",
                   inference.text(0), inference.text(1));
  }
  std::vector<Dim> dims(batch->dims().begin(), batch->dims().end());
  dims.push_back(a[transpose_a ? -1 : -2]);
  dims.push_back(b[transpose_b ? -2 : -1]);
  const DType* dtype = find_attribute<DType>(inference.op(), "dtype");
  return {{Shape(std::move(dims)), dtype == nullptr ? inference.dtype(0) : *dtype}};
}

}  // namespace stof::graph
