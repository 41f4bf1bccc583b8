#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/memory.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

Buffer::Buffer(DType dtype, std::vector<std::int64_t> shape)
    : Buffer(engine::make_buffer("buffer", nullptr, HostTensor(dtype, std::move(shape)))) {}

Buffer::Buffer(DType dtype, std::vector<std::int64_t> shape, std::unique_ptr<engine::Memory> memory)
    : dtype_(dtype), shape_(std::move(shape)), memory_(std::move(memory)) {}

Buffer::Buffer(Buffer&& other) noexcept = default;
Buffer& Buffer::operator=(Buffer&& other) noexcept = default;
Buffer::~Buffer() = default;

TensorView Buffer::view() const {
  return {.data = memory_->data(),
          .dtype = dtype_,
          .shape = shape_,
          .strides = {},
          .location = memory_->location()};
}

void Buffer::upload(const TensorView& host) {
  if (host.shape != shape() ||
      (host.dtype != dtype() && !(is_floating(host.dtype) && is_floating(dtype())))) {
    throw GraphError(fmt::format("upload: the tensor is {}, the buffer {}",
                                 engine::describe(host.dtype, host.shape),
                                 engine::describe(dtype(), shape())));
  }
  HostTensor copy(host);
  if (host.dtype != dtype()) {
    copy = copy.cast(dtype());
  }
  memory_->write(copy.bytes());
}

void Buffer::upload(std::span<const float> values) {
  if (!is_floating(dtype())) {
    throw GraphError(
        fmt::format("upload: floats do not go into a buffer of {}, give a TensorView of that dtype",
                    engine::describe(dtype(), shape())));
  }
  HostTensor tensor(dtype(), shape());
  if (static_cast<std::int64_t>(values.size()) != tensor.element_count()) {
    throw GraphError(fmt::format("upload: {} floats do not fill a buffer of {}", values.size(),
                                 engine::describe(dtype(), shape())));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  }
  memory_->write(tensor.bytes());
}

void Buffer::upload(std::span<const std::int32_t> values) {
  if (dtype() != DType::Int32) {
    throw GraphError(
        fmt::format("upload: integers of 32 bits do not go into a buffer of {}, give a TensorView "
                    "of that dtype",
                    engine::describe(dtype(), shape())));
  }
  if (std::ssize(values) != HostTensor(dtype(), shape()).element_count()) {
    throw GraphError(fmt::format("upload: {} integers of 32 bits do not fill a buffer of {}",
                                 values.size(), engine::describe(dtype(), shape())));
  }
  memory_->write(std::as_bytes(values));
}

HostTensor Buffer::download() const {
  HostTensor tensor(dtype(), shape());
  memory_->read(tensor.bytes());
  return tensor;
}

std::vector<float> Buffer::download_floats() const {
  const HostTensor tensor = download();
  std::vector<float> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(tensor.at(static_cast<std::int64_t>(i)));
  }
  return values;
}

}  // namespace stof
