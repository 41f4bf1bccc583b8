#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof {

std::int64_t TensorView::element_count() const {
  const auto throw_bad = [&](std::string_view fault) {
    throw GraphError(fmt::format("tensor: [{}] {}", fmt::join(shape, ", "), fault));
  };
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      throw_bad("has a negative extent");
    }
    is_empty = is_empty || extent == 0;
  }
  if (is_empty) {
    return 0;
  }
  std::optional<std::int64_t> size = size_bytes(dtype);
  for (const std::int64_t extent : shape) {
    size = size ? base::checked_multiply(*size, extent) : size;
  }
  if (!size) {
    throw_bad(fmt::format("of {} is over 64 bits of bytes", name(dtype)));
  }
  return *size / size_bytes(dtype);
}

bool TensorView::is_contiguous() const {
  const std::int64_t count = element_count();
  if (strides.empty()) {
    return true;
  }
  if (strides.size() != shape.size()) {
    throw GraphError(
        fmt::format("tensor: [{}] has {} strides", fmt::join(shape, ", "), strides.size()));
  }
  if (count == 0) {
    return true;
  }
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) {
      return false;
    }
    expected *= shape[axis];
  }
  return true;
}

}  // namespace stof
