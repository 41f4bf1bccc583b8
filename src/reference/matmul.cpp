#include "reference/matmul.hpp"

#include <algorithm>

#include "base/parallel.hpp"
#include "graph/op_info.hpp"

namespace stof::reference {

namespace {

// The part of a product that one thread computes at a time.
constexpr std::int64_t kTaskRows = 256;
constexpr std::int64_t kTaskColumns = 384;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

struct Product {
  MatrixView a;
  MatrixView b;
  double* c = nullptr;  // row-major
};

// Computes products of equal extents, [m, n] each; bias [n] is added to every row where there is
// one.
template <typename ProductAt>
void multiply_all(std::int64_t count, const GemmExtents& extents, std::span<const double> bias,
                  const Options& options, ProductAt product_at) {
  const std::int64_t row_tasks = ceil_div(extents.m, kTaskRows);
  const std::int64_t column_tasks = ceil_div(extents.n, kTaskColumns);
  const auto compute = [&](std::int64_t task) {
    const std::int64_t column = task % column_tasks * kTaskColumns;
    const std::int64_t row = task / column_tasks % row_tasks * kTaskRows;
    const Product product = product_at(task / column_tasks / row_tasks);
    const GemmExtents part{.m = std::min(kTaskRows, extents.m - row),
                           .n = std::min(kTaskColumns, extents.n - column),
                           .k = extents.k};
    double* c = product.c + row * extents.n + column;
    multiply(product.a.from(row, 0), product.b.from(0, column), part, c, extents.n);
    for (std::int64_t i = 0; i < part.m && !bias.empty(); ++i) {
      for (std::int64_t j = 0; j < part.n; ++j) {
        c[i * extents.n + j] += bias[static_cast<std::size_t>(column + j)];
      }
    }
  };
  base::parallel_for(count * row_tasks * column_tasks, compute, options.thread_count);
}

// The last two axes of an array, transposed or not.
MatrixView matrix_of(const Array& array, bool is_transposed) {
  const std::int64_t columns = array.extent(-1);
  return {array.elements, is_transposed ? 1 : columns, is_transposed ? columns : 1};
}

// Offsets of the matrices of an operand, by the position of a matrix of the result.
class Batch {
 public:
  // The operand's last leading axis is repeated `group` times.
  Batch(const Array& operand, const Sizes& result_shape, std::int64_t group)
      : group_(group), matrix_size_(operand.extent(-1) * operand.extent(-2)) {
    leading_.assign(operand.shape.begin(), operand.shape.end() - 2);
    result_leading_.assign(result_shape.begin(), result_shape.end() - 2);
  }

  std::int64_t offset(std::int64_t position) const {
    std::int64_t index = 0;
    std::int64_t stride = matrix_size_;
    for (std::size_t back = 1; back <= leading_.size(); ++back) {
      const std::int64_t result_extent = result_leading_[result_leading_.size() - back];
      const std::int64_t extent = leading_[leading_.size() - back];
      const std::int64_t coordinate = position % result_extent / (back == 1 ? group_ : 1);
      index += extent == 1 ? 0 : coordinate * stride;
      stride *= extent;
      position /= result_extent;
    }
    return index;
  }

 private:
  std::int64_t group_;
  std::int64_t matrix_size_;
  Sizes leading_;
  Sizes result_leading_;
};

// A product of unlike dtypes takes place in that of b.
Array first_operand(const Call& call) {
  const Array& a = call.input(0);
  const DType dtype = call.input(1).dtype;
  if (a.dtype == dtype || call.options.precision != Precision::Model) {
    return a;
  }
  const std::span<const double> values = call.wide_input(0).values();
  return make_array(dtype, a.shape, {values.begin(), values.end()}, call.options);
}

}  // namespace

Array matmul(const Call& call) {
  const Array a = first_operand(call);
  const Array& b = call.input(1);
  const auto* group = graph::find_attribute<std::int64_t>(call.op, "group");
  const bool transpose_a = graph::attribute<bool>(call.op, "transpose_a");
  const Sizes& shape = call.results[0].shape;
  GemmExtents extents{
      .m = shape.end()[-2], .n = shape.back(), .k = a.extent(transpose_a ? -2 : -1)};
  const MatrixView a_matrix = matrix_of(a, transpose_a);
  const MatrixView b_matrix = matrix_of(b, graph::attribute<bool>(call.op, "transpose_b"));
  const Batch a_batch(a, shape, 1);
  const Batch b_batch(b, shape, group == nullptr ? 1 : *group);
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  std::int64_t count = element_count({shape.begin(), shape.end() - 2});
  if (b.rank() == 2 && !transpose_a) {  // the rows of all matrices are those of one
    extents.m *= count;
    count = 1;
  }
  multiply_all(count, extents, {}, call.options, [&](std::int64_t position) {
    return Product{.a = {a_matrix.elements + a_batch.offset(position), a_matrix.row_stride,
                         a_matrix.column_stride},
                   .b = {b_matrix.elements + b_batch.offset(position), b_matrix.row_stride,
                         b_matrix.column_stride},
                   .c = values.data() + position * extents.m * extents.n};
  });
  return call.result(std::move(values));
}

Array linear(const Call& call) {
  const Array& x = call.input(0);
  const Array& weight = call.input(1);
  const auto weight_id = static_cast<std::size_t>(call.op.inputs[1]);
  const bool is_out_in = call.ir.values[weight_id]->layout == WeightLayout::OutIn;
  const Array bias = call.has_input(2) ? call.wide_input(2) : make_exact_array(x.dtype, {0}, {});
  const Sizes& shape = call.results[0].shape;
  const GemmExtents extents{
      .m = element_count({shape.begin(), shape.end() - 1}), .n = shape.back(), .k = x.extent(-1)};
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  multiply_all(1, extents, bias.values(), call.options, [&](std::int64_t) {
    return Product{.a = matrix_of(x, false), .b = matrix_of(weight, is_out_in), .c = values.data()};
  });
  return call.result(std::move(values));
}

}  // namespace stof::reference
