#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "base/float16.hpp"

namespace stof::reference {

// Floating point elements in memory, read as doubles.
using Elements =
    std::variant<const double*, const float*, const base::Float16*, const base::BFloat16*>;

template <typename T>
double to_double(T element) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element);
  } else {
    return static_cast<double>(element.to_float());
  }
}

// The elements from `offset` on.
Elements operator+(const Elements& elements, std::int64_t offset);

// A matrix in memory. Strides are in elements; 0 repeats a row or a column.
struct MatrixView {
  Elements elements;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;

  MatrixView from(std::int64_t row, std::int64_t column) const {
    return {elements + (row * row_stride + column * column_stride), row_stride, column_stride};
  }
};

struct GemmExtents {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// c[m, n] = a[m, k] b[k, n] on the calling thread; c is row-major with `c_stride` between rows.
// Each element is a sum in double whose order depends on k alone, so a product that is computed in
// parts has the same bits.
void multiply(const MatrixView& a, const MatrixView& b, const GemmExtents& extents, double* c,
              std::int64_t c_stride);

}  // namespace stof::reference
