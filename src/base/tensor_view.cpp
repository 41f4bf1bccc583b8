#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof {

namespace {

// Every element has its offset in bytes within 64 bits.
void check_span(const TensorView& view) {
  std::optional<std::int64_t> span = size_bytes(view.dtype);
  for (std::size_t axis = 0; span && axis < view.shape.size(); ++axis) {
    const std::int64_t stride = view.strides[axis];
    const auto reach = stride == INT64_MIN ? std::nullopt
                                           : base::checked_multiply(view.shape[axis] - 1,
                                                                    stride < 0 ? -stride : stride);
    const auto bytes = reach ? base::checked_multiply(*reach, size_bytes(view.dtype)) : reach;
    span = bytes ? base::checked_add(*span, *bytes) : bytes;
  }
  if (!span) {
    throw GraphError(fmt::format("tensor: [{}] with strides [{}] spans over 64 bits of bytes",
                                 fmt::join(view.shape, ", "), fmt::join(view.strides, ", ")));
  }
}

}  // namespace

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
  check_span(*this);
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
