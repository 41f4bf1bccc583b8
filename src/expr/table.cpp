#include "expr/table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "expr/node.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

using expr::kTableBlock;
using expr::TableData;

std::int64_t word(std::int64_t value) {
  return value;
}

std::int64_t word(double value) {
  return std::bit_cast<std::int64_t>(value);
}

std::vector<std::int64_t> words(std::vector<std::int64_t> values) {
  return values;
}

std::vector<std::int64_t> words(const std::vector<double>& values) {
  std::vector<std::int64_t> result;
  result.reserve(values.size());
  for (const double value : values) {
    result.push_back(word(value));
  }
  return result;
}

bool is_nan(std::int64_t) {
  return false;
}

bool is_nan(double value) {
  return std::isnan(value);
}

template <typename T>
struct Bounds {
  using Limits = std::numeric_limits<T>;

  // No value yet: what any value is below or above.
  T low = Limits::has_infinity ? Limits::infinity() : Limits::max();
  T high = Limits::has_infinity ? -Limits::infinity() : Limits::min();

  void add(T least, T most) {
    low = std::min(low, least);  // keeps `low` where the entry is NaN
    high = std::max(high, most);
  }
};

template <typename T>
void add_bounds(TableData& data, const std::vector<T>& values) {
  Bounds<T> all;
  for (std::size_t first = 0; first < values.size(); first += kTableBlock) {
    Bounds<T> block;
    const std::size_t last = std::min(first + kTableBlock, values.size());
    for (std::size_t i = first; i < last; ++i) {
      block.add(values[i], values[i]);
    }
    data.block_low.push_back(word(block.low));
    data.block_high.push_back(word(block.high));
    all.add(block.low, block.high);
  }
  data.low = word(all.low);
  data.high = word(all.high);
}

template <typename T>
std::shared_ptr<const TableData> table_data(std::string name, ScalarType type,
                                            std::vector<T> values) {
  expr::check_name("table", name);
  if (values.empty()) {
    throw ExpressionError(0, fmt::format("expression: table {} has no entries", name));
  }
  auto data = std::make_shared<TableData>();
  data->name = std::move(name);
  data->type = type;
  data->has_nan = std::ranges::any_of(values, [](T value) { return is_nan(value); });
  add_bounds(*data, values);
  data->entries = words(std::move(values));
  std::string bytes(expr::name_of(type));
  bytes.append(reinterpret_cast<const char*>(data->entries.data()), 8 * data->entries.size());
  data->digest = base::hash(bytes);
  return data;
}

}  // namespace

Table::Table(std::string name, std::vector<std::int64_t> values)
    : data_(table_data(std::move(name), ScalarType::Int, std::move(values))) {}

Table::Table(std::string name, std::vector<double> values)
    : data_(table_data(std::move(name), ScalarType::Float, std::move(values))) {}

const std::string& Table::name() const {
  return data_->name;
}

ScalarType Table::type() const {
  return data_->type;
}

std::int64_t Table::size() const {
  return std::ssize(data_->entries);
}

Expr Table::operator[](const Expr& index) const {
  return expr::make_table(*this, index);
}

Capture::Capture(std::string name, DType dtype, int rank)
    : name_(std::move(name)), dtype_(dtype), rank_(rank) {
  expr::check_name("capture", name_);
  if (rank < 1 || rank > 4) {
    throw ExpressionError(
        0, fmt::format("expression: capture {} has rank {}, which is not 1 to 4", name_, rank));
  }
}

ScalarType Capture::type() const {
  switch (dtype_) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
      return ScalarType::Float;
    case DType::Bool:
      return ScalarType::Bool;
    case DType::Int32:
    case DType::Int64:
    case DType::UInt8:
      break;
  }
  return ScalarType::Int;
}

}  // namespace stof
