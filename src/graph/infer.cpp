#include "graph/infer.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "graph/inference.hpp"

namespace stof::graph {

namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 60;

void check_extent_text(const std::string& what, const Dim& dim) {
  if (dim.is_static()) {
    return;
  }
  const std::string text = dim.text();
  if (text.size() > kMaxExtentLength) {
    throw GraphError(fmt::format("{} has the extent {}..., {} characters over the limit of {}",
                                 what, text.substr(0, 40), text.size() - kMaxExtentLength,
                                 kMaxExtentLength));
  }
}

std::string count_text(int min, int max) {
  return min == max ? fmt::format("{}", min) : fmt::format("{} to {}", min, max);
}

void check_arity(const Inference& inference, const OpInfo& info) {
  const int max_inputs = info.is_variadic ? std::max(1, inference.input_count())
                                          : static_cast<int>(info.inputs.size());
  if (inference.input_count() < info.min_inputs() || inference.input_count() > max_inputs) {
    inference.fail("it has {} inputs, it takes {}", inference.input_count(),
                   count_text(info.min_inputs(), max_inputs));
  }
  if (inference.output_count() < 1 || inference.output_count() > info.max_outputs) {
    inference.fail("it has {} outputs, it gives {}", inference.output_count(),
                   count_text(1, info.max_outputs));
  }
  for (int i = 0; i < inference.input_count(); ++i) {
    const bool may_lack = i >= info.min_inputs() && !info.is_variadic;
    const bool is_last = i + 1 == inference.input_count();
    if (!inference.has(i) && (!may_lack || is_last)) {
      inference.fail("{} is missing", inference.label(i));
    }
  }
}

void check_attributes(const Inference& inference, const OpInfo& info) {
  const auto& attributes = inference.op().attributes;
  for (const AttributeInfo& attribute : info.attributes) {
    if (!attribute.is_optional && !attributes.contains(std::string(attribute.name))) {
      inference.fail("attribute {} is missing", attribute.name);
    }
  }
  for (const auto& [attribute_name, value] : attributes) {
    const AttributeInfo* attribute = info.attribute(attribute_name);
    if (attribute == nullptr) {
      inference.fail("it has no attribute {}", attribute_name);
    }
    if (value.index() != static_cast<std::size_t>(attribute->type)) {
      inference.fail("attribute {} is {}, it takes {}", attribute_name,
                     name(static_cast<AttributeType>(value.index())), name(attribute->type));
    }
  }
}

std::vector<TensorType> infer_binary(const Inference& inference) {
  inference.take_floating(0);
  inference.take_same_dtype(1, 0);
  const std::optional<Shape> shape = broadcast_shape(inference.shape(0), inference.shape(1));
  if (!shape) {
    inference.fail("{} and {} do not broadcast: aligned at the end, extents must be equal or 1",
                   inference.text(0), inference.text(1));
  }
  return {{*shape, inference.dtype(0)}};
}

std::vector<TensorType> infer_unary(const Inference& inference) {
  inference.take_floating(0);
  for (const std::string_view attribute_name : {"factor", "addend"}) {
    if (find_attribute<double>(inference.op(), attribute_name) != nullptr) {
      inference.take_finite(attribute_name);
    }
  }
  return {inference.like(0)};
}

void take_epsilon(const Inference& inference) {
  inference.take_finite("epsilon");
  if (attribute<double>(inference.op(), "epsilon") < 0) {
    inference.fail("epsilon {} is negative", attribute<double>(inference.op(), "epsilon"));
  }
}

// A number for each element of a row of x.
void take_scale_of_rows(const Inference& inference, int position) {
  inference.take_floating(position);
  inference.take_rank(position, 1);
  if (!(inference.shape(position)[0] == inference.shape(0)[-1])) {
    inference.fail("{} ends in {}, {} scales {}", inference.text(0), inference.shape(0)[-1].text(),
                   inference.text(position), inference.shape(position)[0].text());
  }
}

std::vector<TensorType> infer_norm(const Inference& inference) {
  inference.take_floating(0);
  if (inference.shape(0).rank() < 1) {
    inference.fail("{} has no last axis", inference.text(0));
  }
  take_epsilon(inference);
  for (int i = 1; i < inference.input_count(); ++i) {
    take_scale_of_rows(inference, i);
  }
  return {inference.like(0)};
}

// A number for each row of x.
Shape shape_of_moments(const Inference& inference) {
  const Shape& x = inference.shape(0);
  if (x.rank() < 1) {
    inference.fail("{} has no last axis", inference.text(0));
  }
  std::vector<Dim> dims(x.dims().begin(), x.dims().end());
  dims.back() = 1;
  return Shape(std::move(dims));
}

std::vector<TensorType> infer_row_moments(const Inference& inference) {
  inference.take_floating(0);
  take_epsilon(inference);
  return std::vector<TensorType>(static_cast<std::size_t>(inference.output_count()),
                                 {shape_of_moments(inference), DType::Float32});
}

std::vector<TensorType> infer_apply_moments(const Inference& inference) {
  constexpr int kFactor = 1;
  constexpr int kMean = 3;
  constexpr int kShift = 4;
  inference.take_floating(0);
  const Shape moments = shape_of_moments(inference);
  if (inference.has(kShift) && !inference.has(kMean)) {
    inference.fail("{} comes with a mean alone", inference.text(kShift));
  }
  for (int i = 1; i < inference.input_count(); ++i) {
    if (i == kFactor || (i == kMean && inference.has(i))) {
      inference.take_dtype(i, DType::Float32);
      if (!(inference.shape(i) == moments)) {
        inference.fail("{} is for rows of {}, it should be {}", inference.text(i),
                       inference.text(0), moments.text());
      }
    } else if (inference.has(i)) {
      take_scale_of_rows(inference, i);
    }
  }
  return {inference.like(0)};
}

std::vector<TensorType> infer_softmax(const Inference& inference) {
  inference.take_floating(0);
  const Shape& shape = inference.shape(0);
  if (shape.rank() < 1) {
    inference.fail("{} has no last axis", inference.text(0));
  }
  std::vector<TensorType> results = {inference.like(0)};
  if (inference.output_count() == 2) {
    results.push_back(
        {Shape(std::vector<Dim>(shape.dims().begin(), shape.dims().end() - 1)), DType::Float32});
  }
  return results;
}

std::vector<TensorType> infer_cast(const Inference& inference) {
  const auto dtype = attribute<DType>(inference.op(), "dtype");
  if (static_cast<int>(dtype) > static_cast<int>(DType::Bool)) {
    inference.fail("unknown dtype {}", static_cast<int>(dtype));
  }
  return {{inference.shape(0), dtype}};
}

std::vector<TensorType> infer_by_kind(const Inference& inference) {
  using enum OpKind;
  switch (inference.op().kind) {
    case Linear:
      return infer_linear(inference);
    case Attention:
      return infer_attention(inference);
    case MatMul:
      return infer_matmul(inference);
    case Add:
    case Subtract:
    case Multiply:
    case Divide:
    case Maximum:
    case Minimum:
      return infer_binary(inference);
    case Scale:
    case Shift:
    case Relu:
    case Gelu:
    case GeluTanh:
    case Silu:
    case Tanh:
    case Sigmoid:
    case Exp:
    case Sqrt:
    case Reciprocal:
      return infer_unary(inference);
    case ApplyMoments:
      return infer_apply_moments(inference);
    case Cast:
      return infer_cast(inference);
    case LayerNorm:
    case RmsNorm:
      return infer_norm(inference);
    case RowMoments:
      return infer_row_moments(inference);
    case Softmax:
      return infer_softmax(inference);
    case Score:
      return infer_score(inference);
    case Mask:
      return infer_mask(inference);
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
      return infer_reduction(inference);
    case Embedding:
      return infer_embedding(inference);
    case Rotary:
      return infer_rotary(inference);
    case RotaryHeads:
      return infer_rotary_heads(inference);
    case Patches:
      return infer_patches(inference);
    case Concat:
      return infer_concat(inference);
    case Reshape:
      return infer_reshape(inference);
    case Transpose:
      return infer_transpose(inference);
    case Slice:
      return infer_slice(inference);
    case Broadcast:
      return infer_broadcast(inference);
  }
  STOF_CHECK(false) << "operator kind " << static_cast<int>(inference.op().kind);
  return {};
}

}  // namespace

std::vector<TensorType> infer(const Ir& ir, const Operator& op) {
  const Inference inference(ir, op);
  const OpInfo& info = op_info(op.kind);
  check_arity(inference, info);
  check_attributes(inference, info);
  for (const Dim& dim : attribute_extents(op)) {
    check_extent_text(std::string(info.name), dim);
  }
  std::vector<TensorType> results = infer_by_kind(inference);
  STOF_CHECK(results.size() == op.outputs.size()) << info.name;
  for (const TensorType& result : results) {
    check_shape(fmt::format("{}: its result", info.name), result.shape);
  }
  return results;
}

void check_shape(const std::string& what, const Shape& shape) {
  if (shape.rank() > kMaxRank) {
    throw GraphError(
        fmt::format("{} has rank {}, at most {} is allowed", what, shape.rank(), kMaxRank));
  }
  std::int64_t count = 1;
  bool is_too_large = false;
  for (const Dim& dim : shape.dims()) {
    check_extent_text(what, dim);
    if (dim.min() < 0) {
      throw GraphError(dim.is_static() ? fmt::format("{} {} has the negative extent {}", what,
                                                     shape.text(), dim.text())
                                       : fmt::format("{} {} has the extent {}, which may be {}",
                                                     what, shape.text(), dim.text(), dim.min()));
    }
    is_too_large = is_too_large ||
                   __builtin_mul_overflow(count, std::max<std::int64_t>(dim.max(), 1), &count) ||
                   count > kMaxElements;
  }
  if (is_too_large) {
    throw GraphError(fmt::format("{} {} has more than 2^60 elements", what, shape.text()));
  }
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  for (int axis = -rank; axis < 0; ++axis) {
    const Dim& of_a = -axis <= a.rank() ? a[axis] : Dim(1);
    const Dim& of_b = -axis <= b.rank() ? b[axis] : Dim(1);
    if (!(of_a == of_b || of_a == Dim(1) || of_b == Dim(1))) {
      return std::nullopt;
    }
    dims.push_back(of_a == Dim(1) ? of_b : of_a);
  }
  return Shape(std::move(dims));
}

}  // namespace stof::graph
