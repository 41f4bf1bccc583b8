#include "reference/gathers.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::reference {

namespace {

// The elements of x at offset + the sum of strides times coordinates, for each coordinate of the
// result.
Array gather(const Call& call, const Array& x, std::int64_t offset, const Sizes& strides) {
  const Sizes& shape = call.results[0].shape;
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t step = shape.empty() ? 0 : strides.back();
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  const std::int64_t rows = values.empty() ? 0 : element_count(shape) / columns;
  for_ranges(rows, columns, call.options, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const double* from = x.values().data() + offset + row_offset(row, shape, strides);
      double* to = values.data() + row * columns;
      for (std::int64_t i = 0; i < columns; ++i) {
        to[i] = from[i * step];
      }
    }
  });
  return make_exact_array(x.dtype, shape, std::move(values));
}

}  // namespace

Array reshape(const Call& call) {
  Array result = call.input(0);
  result.shape = call.results[0].shape;
  return result;
}

Array transpose(const Call& call) {
  const Array x = call.wide_input(0);
  const Sizes strides = row_major_strides(x.shape);
  Sizes permuted;
  for (const std::int64_t axis :
       graph::attribute<std::vector<std::int64_t>>(call.op, "permutation")) {
    permuted.push_back(strides.at(static_cast<std::size_t>(axis)));
  }
  return gather(call, x, 0, permuted);
}

Array slice(const Call& call) {
  const Array x = call.wide_input(0);
  const auto axis = static_cast<std::size_t>(graph::attribute<std::int64_t>(call.op, "axis"));
  const std::int64_t start = graph::attribute<Dim>(call.op, "start").value();
  const std::int64_t length = call.results[0].shape.at(axis);
  const std::int64_t extent = x.shape.at(axis);
  if (start < 0 || start > extent || length > extent - start) {
    throw GraphError(fmt::format("slice: entries {} to {} are outside axis {} of [{}]", start,
                                 start + length, axis, fmt::join(x.shape, ", ")));
  }
  const Sizes strides = row_major_strides(x.shape);
  return gather(call, x, start * strides[axis], strides);
}

Array broadcast(const Call& call) {
  const Array x = call.wide_input(0);
  return gather(call, x, 0, broadcast_strides(x.shape, call.results[0].shape));
}

Array concat(const Call& call) {
  const auto axis = static_cast<std::size_t>(graph::attribute<std::int64_t>(call.op, "axis"));
  const Sizes& shape = call.results[0].shape;
  const auto middle = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = element_count({shape.begin(), middle});
  const std::int64_t inner = element_count({middle + 1, shape.end()});
  std::vector<double> values(static_cast<std::size_t>(element_count(shape)));
  std::int64_t start = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Array part = call.wide_input(i);
    const std::int64_t length = part.shape.at(axis) * inner;
    for (std::int64_t block = 0; block < outer; ++block) {
      std::copy_n(part.values().data() + block * length, length,
                  values.data() + block * *middle * inner + start);
    }
    start += length;
  }
  return make_exact_array(call.results[0].dtype, shape, std::move(values));
}

Array embedding(const Call& call) {
  const Array& table = call.input(0);
  const Array ids = call.wide_input(1);
  const std::int64_t vocabulary = table.extent(0);
  const std::int64_t hidden = table.extent(1);
  for (std::int64_t i = 0; i < ids.count(); ++i) {
    const double id = ids.values()[static_cast<std::size_t>(i)];
    if (id < 0 || id >= static_cast<double>(vocabulary)) {
      throw GraphError(fmt::format("embedding: id {} at position {} is outside the table [{}, {}]",
                                   static_cast<std::int64_t>(id), i, vocabulary, hidden));
    }
  }
  std::vector<double> values(static_cast<std::size_t>(ids.count() * hidden));
  const auto copy_rows = [&](const auto* from, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto id = static_cast<std::int64_t>(ids.values()[static_cast<std::size_t>(row)]);
      for (std::int64_t i = 0; i < hidden; ++i) {
        values[static_cast<std::size_t>(row * hidden + i)] = to_double(from[id * hidden + i]);
      }
    }
  };
  std::visit(
      [&](const auto* from) {
        for_ranges(ids.count(), hidden, call.options,
                   [&](std::int64_t begin, std::int64_t end) { copy_rows(from, begin, end); });
      },
      table.elements);
  return make_exact_array(table.dtype, call.results[0].shape, std::move(values));
}

// A patch is a gather of six axes: batch, patch row, patch column, channel, row, column.
Array patches(const Call& call) {
  const Array x = call.wide_input(0);
  const auto size = graph::attribute<std::int64_t>(call.op, "size");
  const Sizes strides = row_major_strides(x.shape);
  Call as_axes = call;
  as_axes.results[0].shape = {
      x.extent(0), x.extent(2) / size, x.extent(3) / size, x.extent(1), size, size};
  Array result = gather(
      as_axes, x, 0,
      {strides[0], strides[2] * size, strides[3] * size, strides[1], strides[2], strides[3]});
  result.shape = call.results[0].shape;
  return result;
}

}  // namespace stof::reference
