#include "reference/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.hpp"
#include "graph/op_info.hpp"

namespace stof::reference {

namespace {

using graph::OpKind;

template <typename Function>
Array map_pairs(const Call& call, Function function) {
  const Array a = call.wide_input(0);
  const Array b = call.wide_input(1);
  const Sizes& shape = call.results[0].shape;
  const Sizes a_strides = broadcast_strides(a.shape, shape);
  const Sizes b_strides = broadcast_strides(b.shape, shape);
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t a_step = shape.empty() ? 0 : a_strides.back();
  const std::int64_t b_step = shape.empty() ? 0 : b_strides.back();
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  const std::int64_t rows = values.empty() ? 0 : element_count(shape) / columns;
  const auto map_rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const double* from_a = a.values().data() + row_offset(row, shape, a_strides);
      const double* from_b = b.values().data() + row_offset(row, shape, b_strides);
      double* to = values.data() + row * columns;
      for (std::int64_t i = 0; i < columns; ++i) {
        to[i] = function(from_a[i * a_step], from_b[i * b_step]);
      }
    }
  };
  for_ranges(rows, columns, call.options, map_rows);
  return call.result(std::move(values));
}

template <typename Function>
Array map(const Call& call, Function function) {
  const Array x = call.wide_input(0);
  std::vector<double> values(x.values().size());
  for_ranges(x.count(), 1, call.options, [&](std::int64_t begin, std::int64_t end) {
    std::transform(x.values().data() + begin, x.values().data() + end, values.data() + begin,
                   function);
  });
  return call.result(std::move(values));
}

double gelu(double x) {
  return x / 2 * std::erfc(-x / std::numbers::sqrt2);  // 1 + erf would lose the tail
}

double gelu_tanh(double x) {
  constexpr double kCubic = 0.044715;
  const double u = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + kCubic * x * x * x);
  return x / (1 + std::exp(-2 * u));  // x / 2 * (1 + tanh(u)), which would lose the tail
}

// Of a value that is no NaN.
double clamp_to(DType dtype, double value) {
  switch (dtype) {
    case DType::Int32:
      return std::clamp<double>(value, std::numeric_limits<std::int32_t>::min(),
                                std::numeric_limits<std::int32_t>::max());
    case DType::Int64:
      return std::clamp(value, -0x1p63, 0x1p63);
    default:
      return std::clamp<double>(value, 0, std::numeric_limits<std::uint8_t>::max());
  }
}

}  // namespace

Array binary(const Call& call) {
  switch (call.op.kind) {
    case OpKind::Add:
      return map_pairs(call, [](double a, double b) { return a + b; });
    case OpKind::Subtract:
      return map_pairs(call, [](double a, double b) { return a - b; });
    case OpKind::Multiply:
      return map_pairs(call, [](double a, double b) { return a * b; });
    case OpKind::Divide:
      return map_pairs(call, [](double a, double b) { return a / b; });
    case OpKind::Maximum:
      return map_pairs(call, [](double a, double b) { return a > b || std::isnan(a) ? a : b; });
    default:
      STOF_CHECK(call.op.kind == OpKind::Minimum) << graph::name(call.op.kind);
      return map_pairs(call, [](double a, double b) { return a < b || std::isnan(a) ? a : b; });
  }
}

Array unary(const Call& call) {
  switch (call.op.kind) {
    case OpKind::Scale:
      return map(call, [factor = graph::attribute<double>(call.op, "factor")](double x) {
        return x * factor;
      });
    case OpKind::Shift:
      return map(call, [addend = graph::attribute<double>(call.op, "addend")](double x) {
        return x + addend;
      });
    case OpKind::Relu:
      return map(call, [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; });
    case OpKind::Gelu:
      return map(call, gelu);
    case OpKind::GeluTanh:
      return map(call, gelu_tanh);
    case OpKind::Silu:
      return map(call, [](double x) { return x / (1 + std::exp(-x)); });
    case OpKind::Tanh:
      return map(call, [](double x) { return std::tanh(x); });
    case OpKind::Sigmoid:
      return map(call, [](double x) { return 1 / (1 + std::exp(-x)); });
    case OpKind::Exp:
      return map(call, [](double x) { return std::exp(x); });
    case OpKind::Sqrt:
      return map(call, [](double x) { return std::sqrt(x); });
    default:
      STOF_CHECK(call.op.kind == OpKind::Reciprocal) << graph::name(call.op.kind);
      return map(call, [](double x) { return 1 / x; });
  }
}

Array cast(const Call& call) {
  const DType dtype = call.results[0].dtype;
  if (is_floating(dtype)) {
    return map(call, [](double x) { return x; });
  }
  if (dtype == DType::Bool) {
    return map(call, [](double x) { return x != 0 ? 1.0 : 0.0; });
  }
  return map(call,
             [dtype](double x) { return std::isnan(x) ? 0.0 : clamp_to(dtype, std::trunc(x)); });
}

}  // namespace stof::reference
