#include "reference/rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "graph/op_info.hpp"

namespace stof::reference {

namespace {

using graph::OpKind;

// Calls body(row index, row of x, row of the result) for each row of the first input.
template <typename Body>
std::vector<double> map_rows(const Call& call, Body body) {
  const Array x = call.wide_input(0);
  const auto columns = static_cast<std::size_t>(x.extent(-1));
  std::vector<double> values(x.values().size());
  const auto rows = static_cast<std::int64_t>(columns == 0 ? 0 : values.size() / columns);
  for_ranges(rows, x.extent(-1), call.options, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = static_cast<std::size_t>(begin); row < static_cast<std::size_t>(end); ++row) {
      body(row, x.values().subspan(row * columns, columns),
           std::span(values).subspan(row * columns, columns));
    }
  });
  return values;
}

double mean_of(std::span<const double> row) {
  return std::reduce(row.begin(), row.end()) / static_cast<double>(row.size());
}

// Two passes, so that a large mean costs no digits.
double variance_of(std::span<const double> row, double mean) {
  double sum = 0;
  for (const double x : row) {
    sum += (x - mean) * (x - mean);
  }
  return sum / static_cast<double>(row.size());
}

double sum_of_squares(std::span<const double> row) {
  return std::transform_reduce(row.begin(), row.end(), 0.0, std::plus(),
                               [](double x) { return x * x; });
}

// The largest; NaN if any is.
double max_of(double a, double b) {
  return a > b || std::isnan(a) ? a : b;
}

// Writes the probabilities and returns the log-sum-exp.
double softmax_row(std::span<const double> row, double roundoff, std::span<double> to) {
  const double max = std::accumulate(row.begin(), row.end(), -kInfinity, max_of);
  if (max == -kInfinity) {
    std::ranges::fill(to, 0.0);
    return -kInfinity;
  }
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    to[i] = std::exp(row[i] - max);
    sum += to[i];
  }
  sum *= 1 + static_cast<double>(row.size()) * roundoff / 32;
  for (double& probability : to) {
    probability /= sum;
  }
  return max + std::log(sum);
}

}  // namespace

Array layer_norm(const Call& call) {
  const double epsilon = graph::attribute<double>(call.op, "epsilon");
  const Array gamma = call.wide_input(1);
  const Array beta =
      call.has_input(2)
          ? call.wide_input(2)
          : make_exact_array(gamma.dtype, gamma.shape, std::vector<double>(gamma.values().size()));
  return call.result(
      map_rows(call, [&](std::size_t, std::span<const double> row, std::span<double> to) {
        const double mean = mean_of(row);
        const double factor = 1 / std::sqrt(variance_of(row, mean) + epsilon);
        for (std::size_t i = 0; i < row.size(); ++i) {
          to[i] = (row[i] - mean) * factor * gamma.values()[i] + beta.values()[i];
        }
      }));
}

Array rms_norm(const Call& call) {
  const double epsilon = graph::attribute<double>(call.op, "epsilon");
  const Array gain = call.wide_input(1);
  return call.result(
      map_rows(call, [&](std::size_t, std::span<const double> row, std::span<double> to) {
        const double mean_square = sum_of_squares(row) / static_cast<double>(row.size());
        const double factor = 1 / std::sqrt(mean_square + epsilon);
        for (std::size_t i = 0; i < row.size(); ++i) {
          to[i] = row[i] * factor * gain.values()[i];
        }
      }));
}

std::vector<Array> row_moments(const Call& call) {
  const double epsilon = graph::attribute<double>(call.op, "epsilon");
  const bool is_centred = graph::attribute<bool>(call.op, "centred");
  const Array x = call.wide_input(0);
  const auto columns = static_cast<std::size_t>(x.extent(-1));
  const auto rows = static_cast<std::size_t>(element_count(call.results[0].shape));
  std::vector<double> factors(rows);
  std::vector<double> means(rows);
  for_ranges(static_cast<std::int64_t>(rows), x.extent(-1), call.options,
             [&](std::int64_t begin, std::int64_t end) {
               for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                    ++i) {
                 const std::span<const double> row = x.values().subspan(i * columns, columns);
                 means[i] = is_centred ? mean_of(row) : 0;
                 factors[i] = 1 / std::sqrt(variance_of(row, means[i]) + epsilon);
               }
             });
  std::vector<Array> arrays;
  arrays.push_back(call.result(std::move(factors)));
  if (call.results.size() > 1) {
    arrays.push_back(call.result(std::move(means), 1));
  }
  return arrays;
}

Array apply_moments(const Call& call) {
  constexpr std::size_t kMean = 3;
  constexpr std::size_t kShift = 4;
  const Array factor = call.wide_input(1);
  const Array gain = call.wide_input(2);
  const std::optional<Array> mean =
      call.has_input(kMean) ? std::optional(call.wide_input(kMean)) : std::nullopt;
  const std::optional<Array> shift =
      call.has_input(kShift) ? std::optional(call.wide_input(kShift)) : std::nullopt;
  return call.result(
      map_rows(call, [&](std::size_t index, std::span<const double> row, std::span<double> to) {
        const double mean_of_row = mean ? mean->values()[index] : 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
          to[i] = (row[i] - mean_of_row) * factor.values()[index] * gain.values()[i] +
                  (shift ? shift->values()[i] : 0);
        }
      }));
}

std::vector<Array> softmax(const Call& call) {
  const Sizes& shape = call.input(0).shape;
  std::vector<double> lse(static_cast<std::size_t>(element_count({shape.begin(), shape.end() - 1})),
                          -kInfinity);
  std::vector<Array> arrays;
  arrays.push_back(call.result(
      map_rows(call, [&](std::size_t index, std::span<const double> row, std::span<double> to) {
        lse[index] = softmax_row(row, call.options.roundoff_of_sums, to);
      })));
  if (call.results.size() > 1) {
    arrays.push_back(call.result(std::move(lse), 1));
  }
  return arrays;
}

Array reduce(const Call& call) {
  const Array x = call.wide_input(0);
  const auto axis = static_cast<std::size_t>(graph::attribute<std::int64_t>(call.op, "axis"));
  const auto middle = x.shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t length = x.shape.at(axis);
  const std::int64_t inner = element_count({middle + 1, x.shape.end()});
  const bool is_max = call.op.kind == OpKind::ReduceMax;
  const double start = is_max ? -kInfinity : 0.0;
  const double divisor = call.op.kind == OpKind::ReduceMean ? static_cast<double>(length) : 1.0;
  std::vector<double> values(
      static_cast<std::size_t>(element_count({x.shape.begin(), middle}) * inner));
  const auto reduce_lines = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double* line = x.values().data() + i / inner * length * inner + i % inner;
      double value = start;
      for (std::int64_t k = 0; k < length; ++k) {
        value = is_max ? max_of(value, line[k * inner]) : value + line[k * inner];
      }
      values[static_cast<std::size_t>(i)] = value / divisor;
    }
  };
  for_ranges(static_cast<std::int64_t>(values.size()), length, call.options, reduce_lines);
  return call.result(std::move(values));
}

}  // namespace stof::reference
