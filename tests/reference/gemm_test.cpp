#include "reference/gemm.hpp"

#include <vector>

#include "base/float16.hpp"
#include "reference/micro_kernel.hpp"
#include "testing.hpp"

using stof::reference::GemmExtents;
using stof::reference::MatrixView;
using stof::reference::multiply;
using stof::testing::Values;

namespace {

// Element (row, column) is small integers, so that every sum is exact in any order.
double element(std::int64_t row, std::int64_t column) {
  return static_cast<double>((row * 7 + column * 3) % 11 - 5);
}

// Row-major, or with rows and columns swapped.
template <typename T, typename Convert>
std::vector<T> matrix(std::int64_t rows, std::int64_t columns, bool is_swapped, Convert convert) {
  std::vector<T> elements(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      elements[static_cast<std::size_t>(is_swapped ? j * rows + i : i * columns + j)] =
          convert(element(i, j));
    }
  }
  return elements;
}

MatrixView view(stof::reference::Elements elements, std::int64_t rows, std::int64_t columns,
                bool is_swapped) {
  return {elements, is_swapped ? 1 : columns, is_swapped ? rows : 1};
}

Values expected_product(const GemmExtents& extents) {
  Values c;
  for (std::int64_t i = 0; i < extents.m; ++i) {
    for (std::int64_t j = 0; j < extents.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < extents.k; ++k) {
        sum += element(i, k) * element(k, j);
      }
      c.push_back(sum);
    }
  }
  return c;
}

constexpr GemmExtents kHostile[] = {{1, 1, 1},    {1, 97, 3},    {13, 1, 7},      {8, 24, 256},
                                    {9, 25, 257}, {131, 193, 5}, {129, 200, 300}, {64, 64, 0}};

}  // namespace

TEST_CASE("products of hostile extents, plain and transposed, are exact on integers") {
  const auto keep = [](double value) { return value; };
  for (const GemmExtents& extents : kHostile) {
    for (const bool a_swapped : {false, true}) {
      for (const bool b_swapped : {false, true}) {
        const auto a = matrix<double>(extents.m, extents.k, a_swapped, keep);
        const auto b = matrix<double>(extents.k, extents.n, b_swapped, keep);
        Values c(static_cast<std::size_t>(extents.m * extents.n), -1.0);
        multiply(view(a.data(), extents.m, extents.k, a_swapped),
                 view(b.data(), extents.k, extents.n, b_swapped), extents, c.data(), extents.n);
        CHECK(c == expected_product(extents));
      }
    }
  }
}

TEST_CASE("every storage is read as the numbers that it holds") {
  using stof::base::BFloat16;
  using stof::base::Float16;
  const GemmExtents extents{17, 29, 40};
  const auto a = matrix<Float16>(17, 40, false, Float16::from);
  const auto b = matrix<BFloat16>(40, 29, false, BFloat16::from);
  const auto b_float = matrix<float>(40, 29, true, [](double x) { return static_cast<float>(x); });
  Values c(17 * 29);
  multiply(view(a.data(), 17, 40, false), view(b.data(), 40, 29, false), extents, c.data(), 29);
  CHECK(c == expected_product(extents));
  multiply(view(a.data(), 17, 40, false), view(b_float.data(), 40, 29, true), extents, c.data(),
           29);
  CHECK(c == expected_product(extents));
}

TEST_CASE("a product in parts has the bits of the whole") {
  const Values a = stof::testing::values_of(stof::testing::random_tensor({70, 600}, 1));
  const Values b = stof::testing::values_of(stof::testing::random_tensor({600, 50}, 2));
  const MatrixView a_view{a.data(), 600, 1};
  const MatrixView b_view{b.data(), 50, 1};
  Values whole(70 * 50);
  Values parts(70 * 50);
  multiply(a_view, b_view, {70, 50, 600}, whole.data(), 50);
  multiply(a_view, b_view, {33, 50, 600}, parts.data(), 50);
  multiply(a_view.from(33, 0), b_view.from(0, 0), {37, 21, 600}, parts.data() + 33 * 50, 50);
  multiply(a_view.from(33, 0), b_view.from(0, 21), {37, 29, 600}, parts.data() + 33 * 50 + 21, 50);
  CHECK(whole == parts);
}

TEST_CASE("what is beside the result stays as it is") {
  const Values a = {1, 2, 3};
  const Values b = {4, 5};
  Values c(3 * 4, 9.0);
  multiply({a.data(), 1, 1}, {b.data(), 2, 1}, {3, 2, 1}, c.data(), 4);
  CHECK(c == Values{4, 5, 9, 9, 8, 10, 9, 9, 12, 15, 9, 9});
}
