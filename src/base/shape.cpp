#include <fmt/format.h>

#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof {

namespace {

template <typename ValueOf>
std::vector<std::int64_t> sizes_of(const Shape& shape, ValueOf value_of) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(shape.dims().size());
  for (const Dim& dim : shape.dims()) {
    sizes.push_back(value_of(dim));
    if (sizes.back() < 0) {
      throw GraphError(fmt::format("shape: extent {} of {} is {}", sizes.size() - 1, shape.text(),
                                   sizes.back()));
    }
  }
  return sizes;
}

}  // namespace

Shape Shape::of(std::span<const std::int64_t> sizes) {
  return Shape(std::vector<Dim>(sizes.begin(), sizes.end()));
}

const Dim& Shape::operator[](int axis) const {
  const int index = axis < 0 ? axis + rank() : axis;
  if (index < 0 || index >= rank()) {
    throw GraphError(fmt::format("shape: {} has no axis {}", text(), axis));
  }
  return dims_[static_cast<std::size_t>(index)];
}

bool Shape::is_static() const {
  for (const Dim& dim : dims_) {
    if (!dim.is_static()) {
      return false;
    }
  }
  return true;
}

std::vector<std::int64_t> Shape::sizes() const {
  return sizes_of(*this, [](const Dim& dim) { return dim.value(); });
}

std::vector<std::int64_t> Shape::sizes(const DimValues& values) const {
  return sizes_of(*this, [&](const Dim& dim) { return dim.value(values); });
}

Dim Shape::element_count() const {
  Dim count = 1;
  for (const Dim& dim : dims_) {
    count = count * dim;
  }
  return count;
}

std::string Shape::text() const {
  std::string text;
  for (const Dim& dim : dims_) {
    text += (text.empty() ? "" : ", ") + dim.text();
  }
  return "[" + text + "]";
}

}  // namespace stof
