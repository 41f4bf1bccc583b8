#include <fmt/format.h>

#include "engine/border.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

Buffer::Buffer(DType dtype, std::vector<std::int64_t> shape) : tensor_(dtype, std::move(shape)) {}

void Buffer::upload(const TensorView& host) {
  if (host.shape != shape() ||
      (host.dtype != dtype() && !(is_floating(host.dtype) && is_floating(dtype())))) {
    throw GraphError(fmt::format("upload: the tensor is {}, the buffer {}",
                                 engine::describe(host.dtype, host.shape),
                                 engine::describe(dtype(), shape())));
  }
  HostTensor copy(host);
  tensor_ = host.dtype == dtype() ? std::move(copy) : copy.cast(dtype());
}

void Buffer::upload(std::span<const float> values) {
  if (!is_floating(dtype())) {
    throw GraphError(
        fmt::format("upload: floats do not go into a buffer of {}, give a TensorView of that dtype",
                    engine::describe(dtype(), shape())));
  }
  if (static_cast<std::int64_t>(values.size()) != tensor_.element_count()) {
    throw GraphError(fmt::format("upload: {} floats do not fill a buffer of {}", values.size(),
                                 engine::describe(dtype(), shape())));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor_.set(static_cast<std::int64_t>(i), values[i]);
  }
}

std::vector<float> Buffer::download_floats() const {
  std::vector<float> values(static_cast<std::size_t>(tensor_.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(tensor_.at(static_cast<std::int64_t>(i)));
  }
  return values;
}

}  // namespace stof
