#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/append.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {

using graph::Attribute;
using graph::Operator;
using graph::OpKind;

namespace {

// An axis that may count from the end, from 0.
std::int64_t axis_of(OpKind kind, const Tensor& x, std::int64_t axis) {
  const int rank = x.shape().rank();
  if (axis < -rank || axis >= rank) {
    throw GraphError(fmt::format("{}: axis {} is not one of the {} axes of {}", name(kind), axis,
                                 rank, x.shape().text()));
  }
  return axis < 0 ? axis + rank : axis;
}

Operator reduction(OpKind kind, const Tensor& x, int axis, bool keep_axis) {
  // An empty handle is reported with its argument where the operator is appended.
  return {.kind = kind,
          .attributes = {{"axis", x ? axis_of(kind, x, axis) : 0}, {"keep_axis", keep_axis}}};
}

OpKind kind_of(Activation activation) {
  switch (activation) {
    case Activation::Relu:
      return OpKind::Relu;
    case Activation::Gelu:
      return OpKind::Gelu;
    case Activation::GeluTanh:
      return OpKind::GeluTanh;
    case Activation::Silu:
      return OpKind::Silu;
    case Activation::Tanh:
      return OpKind::Tanh;
    case Activation::Sigmoid:
      return OpKind::Sigmoid;
  }
  throw GraphError(fmt::format("activation: unknown kind {}", static_cast<int>(activation)));
}

}  // namespace

Tensor Graph::linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return append_one({.kind = OpKind::Linear}, {x, weight, bias});
}

Tensor Graph::matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return append_one({.kind = OpKind::MatMul,
                     .attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}},
                    {a, b});
}

Tensor Graph::add(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Add}, {a, b});
}

Tensor Graph::subtract(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Subtract}, {a, b});
}

Tensor Graph::multiply(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Multiply}, {a, b});
}

Tensor Graph::divide(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Divide}, {a, b});
}

Tensor Graph::maximum(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Maximum}, {a, b});
}

Tensor Graph::minimum(const Tensor& a, const Tensor& b) {
  return append_one({.kind = OpKind::Minimum}, {a, b});
}

Tensor Graph::scale(const Tensor& x, double factor) {
  return append_one({.kind = OpKind::Scale, .attributes = {{"factor", factor}}}, {x});
}

Tensor Graph::shift(const Tensor& x, double addend) {
  return append_one({.kind = OpKind::Shift, .attributes = {{"addend", addend}}}, {x});
}

Tensor Graph::activation(const Tensor& x, Activation kind) {
  return append_one({.kind = kind_of(kind)}, {x});
}

Tensor Graph::relu(const Tensor& x) {
  return append_one({.kind = OpKind::Relu}, {x});
}

Tensor Graph::gelu(const Tensor& x) {
  return append_one({.kind = OpKind::Gelu}, {x});
}

Tensor Graph::gelu_tanh(const Tensor& x) {
  return append_one({.kind = OpKind::GeluTanh}, {x});
}

Tensor Graph::silu(const Tensor& x) {
  return append_one({.kind = OpKind::Silu}, {x});
}

Tensor Graph::tanh(const Tensor& x) {
  return append_one({.kind = OpKind::Tanh}, {x});
}

Tensor Graph::sigmoid(const Tensor& x) {
  return append_one({.kind = OpKind::Sigmoid}, {x});
}

Tensor Graph::exp(const Tensor& x) {
  return append_one({.kind = OpKind::Exp}, {x});
}

Tensor Graph::sqrt(const Tensor& x) {
  return append_one({.kind = OpKind::Sqrt}, {x});
}

Tensor Graph::reciprocal(const Tensor& x) {
  return append_one({.kind = OpKind::Reciprocal}, {x});
}

Tensor Graph::cast(const Tensor& x, DType dtype) {
  return append_one({.kind = OpKind::Cast, .attributes = {{"dtype", dtype}}}, {x});
}

Tensor Graph::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon) {
  return append_one({.kind = OpKind::LayerNorm, .attributes = {{"epsilon", epsilon}}},
                    {x, gamma, beta});
}

Tensor Graph::rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  return append_one({.kind = OpKind::RmsNorm, .attributes = {{"epsilon", epsilon}}}, {x, gain});
}

Tensor Graph::softmax(const Tensor& x) {
  return append_one({.kind = OpKind::Softmax}, {x});
}

Tensor Graph::reduce_sum(const Tensor& x, int axis, bool keep_axis) {
  return append_one(reduction(OpKind::ReduceSum, x, axis, keep_axis), {x});
}

Tensor Graph::reduce_mean(const Tensor& x, int axis, bool keep_axis) {
  return append_one(reduction(OpKind::ReduceMean, x, axis, keep_axis), {x});
}

Tensor Graph::reduce_max(const Tensor& x, int axis, bool keep_axis) {
  return append_one(reduction(OpKind::ReduceMax, x, axis, keep_axis), {x});
}

Tensor Graph::embedding(const Tensor& table, const Tensor& ids) {
  return append_one({.kind = OpKind::Embedding}, {table, ids});
}

Tensor Graph::rotary(const Tensor& x, const RotaryOptions& options, const Tensor& positions) {
  const bool has_head_dim = x && x.shape().rank() == 4;
  if (options.rotary_dim == 0 && has_head_dim && !x.shape()[3].is_static()) {
    throw GraphError(fmt::format(
        "rotary: head_dim of x {} is symbolic, so rotary_dim must be given", x.shape().text()));
  }
  const std::int64_t rotary_dim =
      options.rotary_dim == 0 && has_head_dim ? x.shape()[3].value() : options.rotary_dim;
  return append_one({.kind = OpKind::Rotary,
                     .attributes = {{"theta", options.theta},
                                    {"style", std::string(graph::name(options.style))},
                                    {"rotary_dim", rotary_dim},
                                    {"position", options.position}}},
                    {x, positions});
}

Tensor Graph::patches(const Tensor& images, std::int64_t size) {
  return append_one({.kind = OpKind::Patches, .attributes = {{"size", size}}}, {images});
}

Tensor Graph::concat(std::span<const Tensor> parts, int axis) {
  const bool has_axes = !parts.empty() && parts[0];
  Operator op{.kind = OpKind::Concat,
              .outputs = {-1},
              .attributes = {{"axis", has_axes ? axis_of(OpKind::Concat, parts[0], axis) : 0}}};
  return append(std::move(op), parts).front();
}

Tensor Graph::concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}

}  // namespace stof
