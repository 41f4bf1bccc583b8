#include "engine/memory.hpp"

#include <algorithm>
#include <utility>

#include "engine/gpu_backend.hpp"
#include "execute/device_memory.hpp"

namespace stof::engine {

namespace {

class HostMemory : public Memory {
 public:
  explicit HostMemory(HostTensor tensor) : tensor_(std::move(tensor)) {}

  Location location() const override { return Location::Host; }
  void* data() override { return tensor_.bytes().data(); }
  void write(std::span<const std::byte> bytes) override {
    std::ranges::copy(bytes, tensor_.bytes().begin());
  }
  void read(std::span<std::byte> bytes) const override {
    std::ranges::copy(tensor_.bytes(), bytes.begin());
  }

 private:
  HostTensor tensor_;
};

class GpuMemory : public Memory {
 public:
  GpuMemory(int device, std::span<const std::byte> bytes) : memory_(device, bytes.size()) {
    memory_.write(bytes);
  }

  Location location() const override { return Location::Device; }
  void* data() override { return memory_.data(); }
  void write(std::span<const std::byte> bytes) override { memory_.write(bytes); }
  void read(std::span<std::byte> bytes) const override { memory_.read(bytes); }

 private:
  execute::DeviceMemory memory_;
};

}  // namespace

Buffer make_buffer(std::string_view call, const GpuBackend* gpu, HostTensor tensor) {
  const DType dtype = tensor.dtype();
  const std::vector<std::int64_t> shape = tensor.shape();
  if (gpu != nullptr) {
    return {dtype, shape, std::make_unique<GpuMemory>(gpu->device(call), tensor.bytes())};
  }
  return {dtype, shape, std::make_unique<HostMemory>(std::move(tensor))};
}

}  // namespace stof::engine
