#include "validate/expected.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "graph/op_info.hpp"
#include "reference/run.hpp"
#include "validate/changed_inputs.hpp"

namespace stof::validate {

using graph::OpKind;

namespace {

constexpr double kApproximation = 0x1p-22;

// Random changes to the inputs, in roundings of the sums: of 4096 terms of both signs, and of one.
struct Draw {
  Together together;
  double roundings;
};
constexpr std::array kDraws = {Draw{Together::None, 64}, Draw{Together::None, 64},
                               Draw{Together::Rows, 15}, Draw{Together::Columns, 15}};

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 0x1p-11;
    case DType::BFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

// What is smaller may be lost: float16 has no smaller numbers, and others are flushed to zero.
double least(DType dtype) {
  return dtype == DType::Float16 ? 0x1p-24 : 0x1p-126;
}

bool is_narrow(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

// The same graph over float32, which holds inputs that differ by less than 16 bits tell apart.
graph::Ir widened(graph::Ir ir) {
  for (auto& value : ir.values) {
    if (is_narrow(value->dtype)) {
      graph::Value wide = *value;
      wide.dtype = DType::Float32;
      value = std::make_shared<const graph::Value>(std::move(wide));
    }
  }
  for (graph::Operator& op : ir.operators) {
    const auto dtype = op.attributes.find("dtype");
    if (dtype != op.attributes.end() && is_narrow(std::get<DType>(dtype->second))) {
      dtype->second = DType::Float32;
    }
  }
  return ir;
}

reference::Outputs run(const graph::Ir& ir, HostTensors& tensors,
                       const reference::Options& options) {
  reference::Tensors views;
  for (auto& [name, tensor] : tensors) {
    views.emplace(name, tensor.view());
  }
  return reference::run(Graph(ir), views, options);
}

// The root mean square over each piece of how far the results are from `exact`; what overflows or
// is no number says nothing.
void raise_errors(ExpectedOutput& output, const std::vector<double>& results) {
  const auto piece = static_cast<std::size_t>(output.piece);
  for (std::size_t i = 0; i < output.errors.size(); ++i) {
    double squares = 0;
    std::size_t count = 0;
    for (std::size_t j = i * piece; j < std::min((i + 1) * piece, results.size()); ++j) {
      const double difference = results[j] - output.values[j];
      if (std::isfinite(difference)) {
        squares += difference * difference;
        ++count;
      }
    }
    if (count > 0) {
      output.errors[i] =
          std::max(output.errors[i], std::sqrt(squares / static_cast<double>(count)));
    }
  }
}

ExpectedOutput exact_output(const graph::Ir& ir, const graph::Output& output,
                            reference::Output& result) {
  const graph::Value& value = graph::value_at(ir, output.value);
  ExpectedOutput expected{.name = output.name,
                          .dtype = value.dtype,
                          .shape = value.shape.sizes(),
                          .values = std::move(result.values),
                          .piece = 1,
                          .errors = {}};
  const std::int64_t row =
      expected.shape.empty() ? 1 : std::max<std::int64_t>(expected.shape.back(), 1);
  expected.piece = row * ((kLeastPiece + row - 1) / row);
  const auto count = static_cast<std::int64_t>(expected.values.size());
  expected.errors.resize(static_cast<std::size_t>((count + expected.piece - 1) / expected.piece));
  return expected;
}

// Where the unfused graph overflows on its way, so may a kernel. A result that is itself too large
// is to be infinite, unless what overflowed on the way leaves no number.
void forgive_overflow(ExpectedOutput& output, const std::vector<double>& model) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (!std::isfinite(model[i]) && std::isfinite(output.values[i]) &&
        (std::isnan(model[i]) || std::abs(output.values[i]) < largest(output.dtype))) {
      output.values[i] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

// What is wrong with one piece.
std::optional<std::string> wrong_piece(const ExpectedOutput& expected, const HostTensor& actual,
                                       std::size_t place) {
  const double unit = std::max(unit_roundoff(expected.dtype), kApproximation);
  const double explained = expected.errors[place];
  const std::size_t begin = place * static_cast<std::size_t>(expected.piece);
  const std::size_t end =
      std::min(begin + static_cast<std::size_t>(expected.piece), expected.values.size());
  double squares = 0;
  double allowed_squares = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double should = expected.values[i];
    const double is = actual.at(static_cast<std::int64_t>(i));
    if (std::isnan(should) || is == should ||
        (std::abs(should) * (1 + unit) >= largest(expected.dtype) && std::isinf(is) &&
         std::signbit(is) == std::signbit(should))) {
      continue;
    }
    const double rounding = unit * std::abs(should) + least(expected.dtype);
    const double allowed = kWorstSlack * (rounding + explained);
    const double error = std::abs(is - should);
    if (!(error <= allowed)) {
      return fmt::format(
          "output {}: element {} of {} is {:.6g}, should be {:.6g}, off by {:.2g} where {:.2g} is "
          "allowed",
          expected.name, i, expected.values.size(), is, should, error, allowed);
    }
    squares += error * error;
    allowed_squares += rounding * rounding / 3 + explained * explained;
  }
  const auto count = static_cast<double>(end - begin);
  const double slack = kMeanSlack * (1 + 1 / std::sqrt(count));
  if (squares > slack * slack * allowed_squares) {
    return fmt::format(
        "output {}: elements {} to {} of {} are off by {:.2g} in the mean where {:.2g} is allowed",
        expected.name, begin, end - 1, expected.values.size(), std::sqrt(squares / count),
        slack * std::sqrt(allowed_squares / count));
  }
  return std::nullopt;
}

// The first of what is wrong. A thread for each few pieces.
std::optional<std::string> wrong_float(const ExpectedOutput& expected, const HostTensor& actual) {
  constexpr std::int64_t kElements = 1 << 15;  // of a thread: fewer are not worth its start
  const auto pieces = static_cast<std::int64_t>(expected.errors.size());
  const std::int64_t each = std::max<std::int64_t>(kElements / expected.piece, 1);
  std::vector<std::optional<std::string>> faults(
      static_cast<std::size_t>((pieces + each - 1) / each));
  base::parallel_for(std::ssize(faults), [&](std::int64_t part) {
    std::optional<std::string>& fault = faults[static_cast<std::size_t>(part)];
    for (std::int64_t i = part * each; i < std::min((part + 1) * each, pieces) && !fault; ++i) {
      fault = wrong_piece(expected, actual, static_cast<std::size_t>(i));
    }
  });
  const auto first =
      std::ranges::find_if(faults, [](const auto& fault) { return fault.has_value(); });
  return first == faults.end() ? std::nullopt : *first;
}

}  // namespace

std::vector<ExpectedOutput> expected_outputs(const graph::Ir& ir, HostTensors& tensors,
                                             DType accumulate, int thread_count) {
  const graph::Ir wide = widened(ir);
  reference::Options options{.precision = Precision::Float64, .thread_count = thread_count};
  HostTensors as_they_are = changed(tensors, 0, Together::None, 0);
  reference::Outputs exact = run(wide, as_they_are, options);
  std::vector<ExpectedOutput> outputs;
  for (const graph::Output& output : ir.outputs) {
    outputs.push_back(exact_output(ir, output, exact.at(output.name)));
  }
  const auto raise = [&](const reference::Outputs& results) {
    for (ExpectedOutput& output : outputs) {
      raise_errors(output, results.at(output.name).values);
    }
  };
  const reference::Outputs model =
      run(ir, tensors, {.precision = Precision::Model, .thread_count = thread_count});
  raise(model);
  options.roundoff_of_sums = unit_roundoff(accumulate);
  for (std::size_t i = 0; i < kDraws.size(); ++i) {
    const Draw& draw = kDraws.at(i);
    HostTensors moved =
        changed(tensors, draw.roundings * unit_roundoff(accumulate), draw.together, i + 1);
    raise(run(wide, moved, options));
  }
  for (ExpectedOutput& output : outputs) {
    forgive_overflow(output, model.at(output.name).values);
  }
  return outputs;
}

std::optional<std::string> wrong_numbers(const ExpectedOutput& expected, const HostTensor& actual) {
  if (is_floating(expected.dtype)) {
    return wrong_float(expected, actual);
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double is = actual.at(static_cast<std::int64_t>(i));
    if (!std::isnan(expected.values[i]) && is != expected.values[i]) {
      return fmt::format("output {}: element {} of {} is {}, should be {}", expected.name, i,
                         expected.values.size(), is, expected.values[i]);
    }
  }
  return std::nullopt;
}

double host_operations(const graph::Ir& ir) {
  double sum = 0;
  for (const graph::Operator& op : ir.operators) {
    const auto elements =
        static_cast<double>(graph::value_at(ir, op.outputs[0]).shape.element_count().value());
    const graph::Value& first = graph::value_at(ir, op.inputs[0]);
    if (op.kind == OpKind::MatMul) {
      const bool is_transposed = graph::attribute<bool>(op, "transpose_a");
      sum += 2 * elements * static_cast<double>(first.shape[is_transposed ? -2 : -1].value());
    } else if (op.kind == OpKind::Attention) {
      const graph::Value& k = graph::value_at(ir, op.inputs[1]);
      sum += 4 * elements * static_cast<double>(k.shape[2].value());
    } else {
      sum += 10 * std::max(elements, static_cast<double>(first.shape.element_count().value()));
    }
  }
  return sum;
}

}  // namespace stof::validate
