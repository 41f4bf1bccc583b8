#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "reference/gemm.hpp"
#include "reference/run.hpp"
#include "stof/dtype.hpp"

namespace stof::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Sizes = std::vector<std::int64_t>;

// A value of a graph while it runs: row-major and contiguous, doubles that hold values of the
// dtype, or the caller's own memory in that dtype. Copies share the elements.
struct Array {
  DType dtype = DType::Float32;
  Sizes shape;
  Elements elements;
  std::shared_ptr<const std::vector<double>> owner =
      nullptr;  // of the elements; empty: the caller's

  int rank() const { return static_cast<int>(shape.size()); }
  std::int64_t count() const;
  std::int64_t extent(int axis) const;  // negative counts from the end

  // The elements, which must be doubles: see widened.
  std::span<const double> values() const;
};

std::int64_t element_count(const Sizes& shape);
Sizes row_major_strides(const Sizes& shape);
// Strides of a row-major array as seen from a shape that NumPy would broadcast it to: 0 where it
// repeats.
Sizes broadcast_strides(const Sizes& from, const Sizes& to);

// `value` as arithmetic of this precision leaves it in a tensor of this dtype; integers as they
// are.
double rounded(double value, DType dtype, Precision precision);

// Calls body(begin, end) for ranges that cover [0, count), on several threads where that pays; an
// item stands for about `item_size` elements.
void for_ranges(std::int64_t count, std::int64_t item_size, const Options& options,
                const std::function<void(std::int64_t, std::int64_t)>& body);

// Where row `row` of an array of this shape begins in memory with these strides; rows run along the
// last axis.
std::int64_t row_offset(std::int64_t row, const Sizes& shape, const Sizes& strides);

// The same array with doubles as elements.
Array widened(const Array& array, const Options& options);

// An array of values that are rounded here.
Array make_array(DType dtype, Sizes shape, std::vector<double> values, const Options& options);
// An array of values of the dtype.
Array make_exact_array(DType dtype, Sizes shape, std::vector<double> values);

}  // namespace stof::reference
