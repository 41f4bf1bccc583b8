#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"
#include "base/float16.hpp"
#include "stof/error.hpp"
#include "stof/tensor.hpp"

namespace stof {

namespace {

using base::BFloat16;
using base::Float16;

// Calls visit with the type_identity of the C++ type of the dtype.
template <typename Visit>
decltype(auto) with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::Float16:
      return visit(std::type_identity<Float16>());
    case DType::BFloat16:
      return visit(std::type_identity<BFloat16>());
    case DType::Float32:
      return visit(std::type_identity<float>());
    case DType::Int32:
      return visit(std::type_identity<std::int32_t>());
    case DType::Int64:
      return visit(std::type_identity<std::int64_t>());
    case DType::UInt8:
      return visit(std::type_identity<std::uint8_t>());
    case DType::Bool:
      return visit(std::type_identity<bool>());
  }
  throw InternalError(fmt::format("dtype {} is none", static_cast<int>(dtype)));
}

template <typename T>
T load(const std::byte* from) {
  if constexpr (std::is_same_v<T, bool>) {
    return *from != std::byte{0};  // any other byte would be no bool
  } else {
    T value;
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
}

template <typename T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(value.to_float());
  } else {
    return static_cast<double>(value);
  }
}

// An integer to be rounded once more, to a float of at most 24 bits: what a double has no room for
// is kept in its last bit (rounding to odd), so that the second rounding is right.
double to_double_sticky(std::int64_t value) {
  constexpr int kSpareBits =
      std::numeric_limits<std::int64_t>::digits - std::numeric_limits<double>::digits + 1;
  constexpr std::int64_t kSpareMask = (std::int64_t{1} << kSpareBits) - 1;
  const double nearest = static_cast<double>(value);
  if (std::abs(nearest) < 0x1p53 || (value & kSpareMask) == 0) {
    return nearest;
  }
  return static_cast<double>((value & ~kSpareMask) | (kSpareMask + 1));
}

template <typename T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T::from(value);
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(value);
  } else {
    constexpr auto kMin = static_cast<double>(std::numeric_limits<T>::min());
    // The largest int64 is no double; the power of two above it is, and is the first that is out.
    constexpr T kHalf = std::numeric_limits<T>::max() / 2 + 1;
    constexpr auto kEnd = 2 * static_cast<double>(kHalf);
    const bool fits = std::is_same_v<T, bool>
                          ? value == 0 || value == 1
                          : value >= kMin && value < kEnd && std::trunc(value) == value;
    if (!fits) {
      const DType dtype = std::is_same_v<T, bool>           ? DType::Bool
                          : std::is_same_v<T, std::uint8_t> ? DType::UInt8
                          : std::is_same_v<T, std::int32_t> ? DType::Int32
                                                            : DType::Int64;
      throw GraphError(fmt::format("tensor: {} cannot hold {}", name(dtype), value));
    }
    return static_cast<T>(value);
  }
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

std::size_t checked_position(std::int64_t position, std::int64_t count) {
  if (position < 0 || position >= count) {
    throw GraphError(fmt::format("tensor: position {} is outside [0, {})", position, count));
  }
  return static_cast<std::size_t>(position);
}

// Copies a strided view of at least one element, counting through its positions as an odometer
// does.
void copy_strided(const TensorView& view, std::byte* to) {
  const auto size = static_cast<std::size_t>(size_bytes(view.dtype));
  const auto* from = static_cast<const std::byte*>(view.data);
  std::vector<std::int64_t> position(view.shape.size());
  for (std::int64_t left = view.element_count(); left > 0; --left, to += size) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < position.size(); ++axis) {
      offset += position[axis] * view.strides[axis];
    }
    std::memcpy(to, from + offset * static_cast<std::int64_t>(size), size);
    for (std::size_t axis = position.size(); axis-- > 0;) {
      if (++position[axis] < view.shape[axis]) {
        break;
      }
      position[axis] = 0;
    }
  }
}

}  // namespace

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)) {
  const TensorView view{.dtype = dtype_, .shape = shape_};
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;  // a terabyte
  const std::int64_t bytes = view.element_count() * size_bytes(dtype_);
  const auto throw_too_large = [&] {
    throw GraphError(fmt::format("tensor: {}[{}] of {} bytes does not fit in memory", name(dtype_),
                                 fmt::join(shape_, ", "), bytes));
  };
  if (bytes > kMaxBytes) {
    throw_too_large();
  }
  try {
    storage_.resize(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    throw_too_large();
  }
}

HostTensor::HostTensor(const TensorView& view) : HostTensor(view.dtype, view.shape) {
  const bool is_contiguous = view.is_contiguous();
  if (view.location != Location::Host) {
    throw GraphError("tensor: a view of device memory cannot be read on the host");
  }
  if (storage_.empty()) {
    return;
  }
  if (view.data == nullptr) {
    throw GraphError(fmt::format("tensor: [{}] has no data", fmt::join(shape_, ", ")));
  }
  if (is_contiguous) {
    std::memcpy(storage_.data(), view.data, storage_.size());
  } else {
    copy_strided(view, storage_.data());
  }
}

std::int64_t HostTensor::element_count() const {
  return static_cast<std::int64_t>(storage_.size()) / size_bytes(dtype_);
}

TensorView HostTensor::view() {
  return {.data = storage_.data(), .dtype = dtype_, .shape = shape_};
}

double HostTensor::at(std::int64_t position) const {
  const std::size_t index = checked_position(position, element_count());
  return with_type(dtype_, [&](auto type) {
    using T = typename decltype(type)::type;
    return to_double(load<T>(storage_.data() + index * sizeof(T)));
  });
}

void HostTensor::set(std::int64_t position, double value) {
  const std::size_t index = checked_position(position, element_count());
  with_type(dtype_, [&](auto type) {
    using T = typename decltype(type)::type;
    store(storage_.data() + index * sizeof(T), from_double<T>(value));
  });
}

HostTensor HostTensor::cast(DType dtype) const {
  if (dtype == dtype_) {
    return *this;
  }
  HostTensor result(dtype, shape_);
  const auto count = static_cast<std::size_t>(element_count());
  with_type(dtype_, [&](auto from_type) {
    with_type(dtype, [&](auto to_type) {
      using From = typename decltype(from_type)::type;
      using To = typename decltype(to_type)::type;
      for (std::size_t i = 0; i < count; ++i) {
        const From value = load<From>(storage_.data() + i * sizeof(From));
        double wide = 0;
        if constexpr (std::is_same_v<From, std::int64_t>) {
          wide = is_floating(dtype) ? to_double_sticky(value) : to_double(value);
        } else {
          wide = to_double(value);
        }
        store(result.storage_.data() + i * sizeof(To), from_double<To>(wide));
      }
    });
  });
  return result;
}

}  // namespace stof
