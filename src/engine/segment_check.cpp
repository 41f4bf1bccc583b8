#include "engine/segment_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/float16.hpp"
#include "engine/mask_sample.hpp"
#include "graph/append.hpp"
#include "graph/op_info.hpp"
#include "reference/run.hpp"
#include "stof/error.hpp"
#include "validate/expected.hpp"

namespace stof::engine {

using graph::OpKind;

namespace {

// Tensors are windows of one pool, whose length has no small factors, so that rows differ.
constexpr std::size_t kPoolSize = 1048583;

const std::vector<float>& normal_pool() {
  static const std::vector<float> pool = [] {
    std::vector<float> values(kPoolSize);
    std::mt19937_64 random(20260101);
    std::normal_distribution<float> normal;
    std::ranges::generate(values, [&] { return normal(random); });
    return values;
  }();
  return pool;
}

template <typename T, typename Convert>
void fill_from_pool(std::span<std::byte> bytes, std::size_t start, Convert convert) {
  const std::vector<float>& pool = normal_pool();
  const std::size_t count = bytes.size() / sizeof(T);
  std::vector<T> period(std::min(count, kPoolSize));
  for (std::size_t i = 0; i < period.size(); ++i) {
    period[i] = convert(pool[(start + i) % kPoolSize]);
  }
  for (std::size_t done = 0; done < count; done += period.size()) {
    std::memcpy(bytes.data() + done * sizeof(T), period.data(),
                std::min(period.size(), count - done) * sizeof(T));
  }
}

HostTensor normal_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::size_t start,
                         float scale) {
  HostTensor tensor(dtype, shape);
  if (dtype == DType::Float16) {
    fill_from_pool<std::uint16_t>(tensor.bytes(), start, [&](float value) {
      return base::Float16::from(static_cast<double>(scale * value)).bits;
    });
  } else if (dtype == DType::BFloat16) {
    fill_from_pool<std::uint16_t>(tensor.bytes(), start, [&](float value) {
      return base::BFloat16::from(static_cast<double>(scale * value)).bits;
    });
  } else {
    fill_from_pool<float>(tensor.bytes(), start, [&](float value) { return scale * value; });
  }
  return tensor;
}

std::int64_t last_extent(const graph::Value& value) {
  return value.shape.rank() == 0 ? 1 : value.shape[value.shape.rank() - 1].value();
}

// From 0 to `end` - 1.
HostTensor spread_integers(DType dtype, const std::vector<std::int64_t>& shape, std::int64_t end) {
  HostTensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.set(i, static_cast<double>(i * 7919 % end));
  }
  return tensor;
}

HostTensor all_true(const std::vector<std::int64_t>& shape) {
  HostTensor tensor(DType::Bool, shape);
  std::ranges::fill(tensor.bytes(), std::byte{1});
  return tensor;
}

// Integers are what an operator says that they are.
HostTensor integers_for(const graph::Ir& ir, int id) {
  const graph::Value& value = graph::value_at(ir, id);
  const std::vector<std::int64_t> shape = value.shape.sizes({});
  for (const graph::Operator& op : ir.operators) {
    const auto reads = [&](std::size_t input) {
      return op.inputs.size() > input && op.inputs[input] == id;
    };
    if (op.kind == OpKind::Embedding && reads(1)) {
      return spread_integers(value.dtype, shape,
                             graph::value_at(ir, op.inputs[0]).shape[0].value());
    }
    if (op.kind == OpKind::Rotary && reads(1)) {
      return spread_integers(value.dtype, shape, 512);
    }
    const bool is_captured = std::any_of(op.captures.begin(), op.captures.end(),
                                         [&](const auto& capture) { return capture.second == id; });
    if (op.kind == OpKind::Attention && value.dtype == DType::Bool && is_captured) {
      return all_true(shape);  // a mask in the score, whose kernels see all keys
    }
    for (const std::size_t input : {3, 4, 5}) {  // numbers of keys, and a mask that arrives
      if (op.kind == OpKind::Attention && reads(input)) {
        return mask_sample(ir, op, input);
      }
    }
  }
  throw GraphError(fmt::format("tune: what '{}' may hold is not known", value.name));
}

double product_of(const Shape& shape, int end) {
  double product = 1;
  for (int axis = 0; axis < end; ++axis) {
    product *= static_cast<double>(shape[axis].value());
  }
  return product;
}

bool is_row_local(OpKind kind) {
  switch (kind) {
    case OpKind::Add:
    case OpKind::Subtract:
    case OpKind::Multiply:
    case OpKind::Divide:
    case OpKind::Maximum:
    case OpKind::Minimum:
    case OpKind::Scale:
    case OpKind::Shift:
    case OpKind::Relu:
    case OpKind::Gelu:
    case OpKind::GeluTanh:
    case OpKind::Silu:
    case OpKind::Tanh:
    case OpKind::Sigmoid:
    case OpKind::Exp:
    case OpKind::Sqrt:
    case OpKind::Reciprocal:
    case OpKind::Cast:
    case OpKind::LayerNorm:
    case OpKind::RmsNorm:
    case OpKind::RowMoments:
    case OpKind::ApplyMoments:
      return true;
    default:
      return false;
  }
}

std::int64_t row_count(const graph::Value& value) {
  const int rank = value.shape.rank();
  return rank == 0 ? 1 : static_cast<std::int64_t>(product_of(value.shape, rank - 1));
}

HostTensor gathered(const HostTensor& tensor, std::int64_t columns,
                    std::span<const std::int64_t> rows) {
  HostTensor result(tensor.dtype(), {static_cast<std::int64_t>(rows.size()), columns});
  const auto row_bytes = static_cast<std::size_t>(columns * size_bytes(tensor.dtype()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(result.bytes().data() + i * row_bytes,
                tensor.bytes().data() + static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes);
  }
  return result;
}

// A graph whose rows do not depend on each other, for some of the rows, each tensor of them as a
// matrix.
class RowGraph {
 public:
  RowGraph(const graph::Ir& ir, const HostTensors& tensors, std::int64_t count,
           std::span<const std::int64_t> rows)
      : from_(ir), given_(tensors), count_(count), rows_(rows) {}

  // False where rows do depend on each other.
  bool make() {
    for (const graph::Operator& op : from_.operators) {
      if (!add(op)) {
        return false;
      }
    }
    for (const graph::Output& output : from_.outputs) {
      const auto value = ids_.find(output.value);
      if (value == ids_.end()) {
        return false;
      }
      graph::append_output(to_, output.name, value->second);
    }
    return true;
  }

  reference::Outputs run() {
    reference::Tensors views;
    for (auto& [name, tensor] : tensors_) {
      views.emplace(name, tensor.view());
    }
    return reference::run(Graph(to_), views, {.precision = Precision::Float64});
  }

 private:
  bool add(const graph::Operator& op) {
    if (op.outputs.size() != 1 || row_count(result_of(op)) != count_) {
      return false;
    }
    if (op.kind == OpKind::Reshape) {
      const graph::Value& x = graph::value_at(from_, op.inputs[0]);
      const std::optional<int> same =
          last_extent(x) == last_extent(result_of(op)) ? rows_of(op.inputs[0]) : std::nullopt;
      if (same) {
        ids_.emplace(op.outputs[0], *same);
      }
      return same.has_value();
    }
    if (op.kind != OpKind::MatMul && !is_row_local(op.kind)) {
      return false;
    }
    graph::Operator restricted = op;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] >= 0) {
        const bool is_matrix = op.kind == OpKind::MatMul && i == 1;
        const auto id = is_matrix ? whole(op.inputs[i]) : rows_or_row(op.inputs[i]);
        if (!id) {
          return false;
        }
        restricted.inputs[i] = *id;
      }
    }
    const auto* is_transposed = graph::find_attribute<bool>(op, "transpose_a");
    if (is_transposed != nullptr && *is_transposed) {
      return false;
    }
    ids_.emplace(op.outputs[0], graph::append(to_, std::move(restricted))[0]);
    return true;
  }

  const graph::Value& result_of(const graph::Operator& op) const {
    return graph::value_at(from_, op.outputs[0]);
  }

  // A matrix of weights, as it is.
  std::optional<int> whole(int id) {
    const graph::Value& value = graph::value_at(from_, id);
    if (value.producer >= 0 || value.shape.rank() != 2) {
      return std::nullopt;
    }
    return border(id, value.shape.sizes({}), [&](const HostTensor& tensor) { return tensor; });
  }

  // The rows of a value, or the one row that all share.
  std::optional<int> rows_or_row(int id) {
    const graph::Value& value = graph::value_at(from_, id);
    if (value.producer >= 0 || row_count(value) == count_) {
      return rows_of(id);
    }
    if (row_count(value) != 1) {
      return std::nullopt;
    }
    const std::vector<std::int64_t> shape = {last_extent(value)};
    return border(id, shape, [&](const HostTensor& tensor) {
      HostTensor row(tensor.dtype(), shape);
      std::ranges::copy(tensor.bytes(), row.bytes().begin());
      return row;
    });
  }

  std::optional<int> rows_of(int id) {
    const graph::Value& value = graph::value_at(from_, id);
    if (const auto known = ids_.find(id); known != ids_.end()) {
      return known->second;
    }
    if (value.producer >= 0 || row_count(value) != count_) {
      return std::nullopt;
    }
    const std::int64_t columns = last_extent(value);
    return border(id, {static_cast<std::int64_t>(rows_.size()), columns},
                  [&](const HostTensor& tensor) { return gathered(tensor, columns, rows_); });
  }

  template <typename Restrict>
  std::optional<int> border(int id, const std::vector<std::int64_t>& shape, Restrict restrict) {
    const auto known = ids_.find(id);
    if (known != ids_.end()) {
      return known->second;
    }
    graph::Value value = graph::value_at(from_, id);
    value.shape = Shape::of(shape);
    tensors_.emplace(value.name, restrict(given_.at(value.name)));
    return ids_.emplace(id, graph::append_value(to_, std::move(value))).first->second;
  }

  const graph::Ir& from_;
  const HostTensors& given_;
  std::int64_t count_;
  std::span<const std::int64_t> rows_;
  graph::Ir to_;
  HostTensors tensors_;
  std::map<int, int> ids_;  // value in from_ -> in to_
};

// The rows of a whole result.
std::vector<double> pick(const std::vector<double>& values, std::int64_t columns,
                         std::span<const std::int64_t> rows) {
  std::vector<double> picked;
  for (const std::int64_t row : rows) {
    const auto begin = values.begin() + row * columns;
    picked.insert(picked.end(), begin, begin + columns);
  }
  return picked;
}

// Of a row, relative to its length: four units in the last place of its dtype, which no sum of
// float32 products comes near to.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 0x1p-8;
    case DType::BFloat16:
      return 0x1p-5;
    default:
      return 1e-3;
  }
}

HostTensor random_tensor(const graph::Ir& ir, int id) {
  const graph::Value& value = graph::value_at(ir, id);
  if (!is_floating(value.dtype)) {
    return integers_for(ir, id);
  }
  const bool is_matrix = value.role == graph::ValueRole::Weight && value.shape.rank() >= 2;
  const float scale = is_matrix ? 1 / std::sqrt(static_cast<float>(last_extent(value))) : 1.0F;
  const std::size_t start = 131071 * static_cast<std::size_t>(id);
  return normal_tensor(value.dtype, value.shape.sizes({}), start, scale);
}

// Of the values that `takes` has of this role.
template <typename Takes>
HostTensors random_tensors_of(const graph::Ir& ir, Takes takes) {
  HostTensors tensors;
  for (int id = 0; id < std::ssize(ir.values); ++id) {
    const graph::Value& value = graph::value_at(ir, id);
    if (takes(value.role)) {
      tensors.emplace(value.name, random_tensor(ir, id));
    }
  }
  return tensors;
}

}  // namespace

HostTensors random_tensors(const graph::Ir& ir) {
  return random_tensors_of(ir,
                           [](graph::ValueRole role) { return role != graph::ValueRole::Result; });
}

HostTensors random_weights(const graph::Ir& ir) {
  return random_tensors_of(ir,
                           [](graph::ValueRole role) { return role == graph::ValueRole::Weight; });
}

std::vector<std::int64_t> checked_rows(std::int64_t count) {
  std::set<std::int64_t> rows;
  if (count <= kCheckedRows) {
    for (std::int64_t row = 0; row < count; ++row) {
      rows.insert(row);
    }
  } else {
    constexpr std::int64_t kTile = 64;
    const std::int64_t tail = (count - 1) / kTile * kTile;
    rows = {0, 1, tail - 1, tail, count - 2, count - 1};
    const auto left = kCheckedRows - std::ssize(rows);
    for (std::int64_t i = 0; i < left; ++i) {
      rows.insert((2 * i + 1) * count / (2 * left));
    }
  }
  return {rows.begin(), rows.end()};
}

Expectation expect(const graph::Ir& ir, const HostTensors& tensors) {
  Expectation expectation;
  for (const graph::Output& output : ir.outputs) {
    const graph::Value& value = graph::value_at(ir, output.value);
    const bool is_scalar_row = value.shape.rank() == 0;
    expectation.outputs.push_back({.dtype = value.dtype,
                                   .row_elements = is_scalar_row ? 1 : last_extent(value),
                                   .rows = checked_rows(row_count(value)),
                                   .values = {}});
  }
  const std::int64_t count = row_count(graph::value_at(ir, ir.outputs.front().value));
  const std::vector<std::int64_t> rows = expectation.outputs.front().rows;
  RowGraph restricted(ir, tensors, count, rows);
  const bool is_restricted = restricted.make();
  if (!is_restricted && validate::host_operations(ir) > kMostOperations) {
    return {.outputs = {},
            .skipped = fmt::format("its rows depend on each other, and all of them take {:.1e} "
                                   "operations on the host, {:.1e} at most are spent",
                                   validate::host_operations(ir), kMostOperations)};
  }
  reference::Outputs results;
  if (is_restricted) {
    results = restricted.run();
  } else {
    HostTensors all = tensors;
    reference::Tensors views;
    for (auto& [name, tensor] : all) {
      views.emplace(name, tensor.view());
    }
    results = reference::run(Graph(ir), views, {.precision = Precision::Float64});
  }
  for (std::size_t i = 0; i < ir.outputs.size(); ++i) {
    ExpectedRows& expected = expectation.outputs[i];
    std::vector<double>& values = results.at(ir.outputs[i].name).values;
    expected.values =
        is_restricted ? std::move(values) : pick(values, expected.row_elements, expected.rows);
  }
  return expectation;
}

std::optional<std::string> mismatch(const ExpectedRows& expected, std::span<const double> actual) {
  const double allowed = tolerance(expected.dtype);
  const auto columns = static_cast<std::size_t>(expected.row_elements);
  double all_squares = 0;
  for (const double value : expected.values) {
    all_squares += std::isinf(value) ? 0 : value * value;
  }
  // A row much shorter than the others has its errors from the numbers that it was made of.
  const double least =
      all_squares / static_cast<double>(std::max<std::size_t>(expected.rows.size(), 1)) / 100;
  for (std::size_t row = 0; row < expected.rows.size(); ++row) {
    double squares = 0;
    double error = 0;
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double difference =
          actual[i] == expected.values[i] ? 0 : actual[i] - expected.values[i];
      error += difference * difference;
      squares += std::isinf(expected.values[i]) ? 0 : expected.values[i] * expected.values[i];
    }
    const double relative = std::sqrt(error / std::max({squares, least, 1e-30}));
    if (!(relative <= allowed)) {
      return fmt::format("row {} is off by {:.2g} of its length, {:.2g} is allowed",
                         expected.rows[row], relative, allowed);
    }
  }
  return std::nullopt;
}

}  // namespace stof::engine
