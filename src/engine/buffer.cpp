#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "engine/border.hpp"
#include "engine/memory.hpp"
#include "stof/engine.hpp"
#include "stof/error.hpp"

namespace stof {

namespace {

// Whether so many values of a kind are what a tensor takes, which is of their dtype or not.
void check_values(std::string_view kind, bool is_of_dtype, std::int64_t count,
                  const HostTensor& tensor) {
  const std::string buffer = engine::describe(tensor.dtype(), tensor.shape());
  if (!is_of_dtype) {
    throw GraphError(fmt::format(
        "upload: {} do not go into a buffer of {}, give a TensorView of that dtype", kind, buffer));
  }
  if (count != tensor.element_count()) {
    throw GraphError(fmt::format("upload: {} {} do not fill a buffer of {}", count, kind, buffer));
  }
}

}  // namespace

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
  HostTensor tensor(dtype(), shape());
  check_values("floats", is_floating(dtype()), std::ssize(values), tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), values[i]);
  }
  memory_->write(tensor.bytes());
}

void Buffer::upload(std::span<const std::int32_t> values) {
  check_values("integers of 32 bits", dtype() == DType::Int32, std::ssize(values),
               HostTensor(dtype(), shape()));
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
