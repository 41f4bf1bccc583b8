#include "reference/array.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/float16.hpp"
#include "base/parallel.hpp"

namespace stof::reference {

namespace {

// Elements that are worth handing to another thread.
constexpr std::int64_t kGrain = 16384;

template <typename Round>
void round_all(std::vector<double>& values, const Options& options, Round round) {
  for_ranges(static_cast<std::int64_t>(values.size()), 1, options,
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 double& value = values[static_cast<std::size_t>(i)];
                 value = round(value);
               }
             });
}

}  // namespace

std::int64_t element_count(const Sizes& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= extent;
  }
  return count;
}

Sizes row_major_strides(const Sizes& shape) {
  Sizes strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Sizes broadcast_strides(const Sizes& from, const Sizes& to) {
  const Sizes own = row_major_strides(from);
  Sizes strides(to.size(), 0);
  const std::size_t missing = to.size() - from.size();
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    strides[missing + axis] = from[axis] == 1 ? 0 : own[axis];
  }
  return strides;
}

std::int64_t Array::count() const {
  return element_count(shape);
}

std::int64_t Array::extent(int axis) const {
  return shape.at(static_cast<std::size_t>(axis < 0 ? axis + rank() : axis));
}

std::span<const double> Array::values() const {
  const auto* const* doubles = std::get_if<const double*>(&elements);
  STOF_CHECK(doubles != nullptr) << "elements are not doubles";
  return {*doubles, static_cast<std::size_t>(count())};
}

double rounded(double value, DType dtype, Precision precision) {
  if (precision == Precision::Float64 || !is_floating(dtype)) {
    return value;
  }
  if (precision == Precision::Model && dtype == DType::Float16) {
    return static_cast<double>(base::Float16::from(value).to_float());
  }
  if (precision == Precision::Model && dtype == DType::BFloat16) {
    return static_cast<double>(base::BFloat16::from(value).to_float());
  }
  return static_cast<double>(static_cast<float>(value));
}

void for_ranges(std::int64_t count, std::int64_t item_size, const Options& options,
                const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t range =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, item_size));
  if (count <= range) {
    body(0, count);
    return;
  }
  base::parallel_for((count + range - 1) / range,
                     [&](std::int64_t i) { body(i * range, std::min(count, (i + 1) * range)); },
                     options.thread_count);
}

std::int64_t row_offset(std::int64_t row, const Sizes& shape, const Sizes& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = shape.size() - std::min<std::size_t>(1, shape.size()); axis-- > 0;) {
    offset += row % shape[axis] * strides[axis];
    row /= shape[axis];
  }
  return offset;
}

Array widened(const Array& array, const Options& options) {
  if (std::holds_alternative<const double*>(array.elements)) {
    return array;
  }
  std::vector<double> values(static_cast<std::size_t>(array.count()));
  std::visit(
      [&](const auto* from) {
        for_ranges(array.count(), 1, options, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            values[static_cast<std::size_t>(i)] = to_double(from[i]);
          }
        });
      },
      array.elements);
  return make_exact_array(array.dtype, array.shape, std::move(values));
}

Array make_array(DType dtype, Sizes shape, std::vector<double> values, const Options& options) {
  if (is_floating(dtype) && options.precision != Precision::Float64) {
    round_all(values, options,
              [&](double value) { return rounded(value, dtype, options.precision); });
  }
  return make_exact_array(dtype, std::move(shape), std::move(values));
}

Array make_exact_array(DType dtype, Sizes shape, std::vector<double> values) {
  STOF_CHECK(static_cast<std::int64_t>(values.size()) == element_count(shape))
      << values.size() << " values";
  auto owner = std::make_shared<const std::vector<double>>(std::move(values));
  const double* elements = owner->data();
  return {
      .dtype = dtype, .shape = std::move(shape), .elements = elements, .owner = std::move(owner)};
}

}  // namespace stof::reference
