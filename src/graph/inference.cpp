#include "graph/inference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace stof::graph {

const Value& Inference::value(int id) const {
  STOF_CHECK(id >= 0 && static_cast<std::size_t>(id) < ir_.values.size())
      << name(op_.kind) << ": value " << id << " of " << ir_.values.size();
  return *ir_.values[static_cast<std::size_t>(id)];
}

const Value& Inference::in(int position) const {
  return value(input_or_none(op_, position));
}

std::string Inference::label(int position) const {
  const OpInfo& info = op_info(op_.kind);
  if (info.is_variadic) {
    return fmt::format("{}[{}]", info.inputs.back().name, position);
  }
  return std::string(info.inputs.at(static_cast<std::size_t>(position)).name);
}

std::string Inference::text(int position) const {
  return fmt::format("{} {}", label(position), shape(position).text());
}

void Inference::take_rank(int position, int rank) const {
  if (shape(position).rank() != rank) {
    fail("{} has rank {}, it takes rank {}", text(position), shape(position).rank(), rank);
  }
}

void Inference::take_axes(int position, int rank, std::string_view axes) const {
  if (shape(position).rank() != rank) {
    fail("{} has rank {}, it takes {}", text(position), shape(position).rank(), axes);
  }
}

void Inference::take_floating(int position) const {
  if (!is_floating(dtype(position))) {
    fail("{} is {}, it takes float16, bfloat16 or float32", label(position), name(dtype(position)));
  }
}

void Inference::take_dtype(int position, DType wanted) const {
  if (dtype(position) != wanted) {
    fail("{} is {}, it takes {}", label(position), stof::name(dtype(position)), stof::name(wanted));
  }
}

void Inference::take_same_dtype(int position, int other) const {
  if (dtype(position) != dtype(other)) {
    fail("{} is {}, {} is {}: cast one of them", label(other), stof::name(dtype(other)),
         label(position), stof::name(dtype(position)));
  }
}

void Inference::take_finite(std::string_view attribute_name) const {
  const auto value = attribute<double>(op_, attribute_name);
  if (!std::isfinite(value)) {
    fail("{} {} is not finite", attribute_name, value);
  }
}

int Inference::take_axis(int rank) const {
  const auto axis = attribute<std::int64_t>(op_, "axis");
  if (axis < 0 || axis >= rank) {
    fail("axis {} is not below the rank {} of {}", axis, rank, text(0));
  }
  return static_cast<int>(axis);
}

}  // namespace stof::graph
