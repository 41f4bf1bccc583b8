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

// A piece of memory that others may have pieces of.
class GpuMemory : public Memory {
 public:
  GpuMemory(std::shared_ptr<execute::DeviceMemory> memory, std::size_t offset_bytes,
            std::span<const std::byte> bytes)
      : memory_(std::move(memory)), offset_bytes_(offset_bytes) {
    write(bytes);
  }

  Location location() const override { return Location::Device; }
  void* data() override { return memory_->data() + offset_bytes_; }
  void write(std::span<const std::byte> bytes) override { memory_->write(bytes, offset_bytes_); }
  void read(std::span<std::byte> bytes) const override { memory_->read(bytes, offset_bytes_); }

 private:
  std::shared_ptr<execute::DeviceMemory> memory_;
  std::size_t offset_bytes_;
};

}  // namespace

Buffer make_buffer(std::string_view call, const GpuBackend* gpu, HostTensor tensor) {
  const DType dtype = tensor.dtype();
  const std::vector<std::int64_t> shape = tensor.shape();
  if (gpu != nullptr) {
    auto memory = std::make_shared<execute::DeviceMemory>(gpu->device(call), tensor.bytes().size());
    return {dtype, shape, std::make_unique<GpuMemory>(std::move(memory), 0, tensor.bytes())};
  }
  return {dtype, shape, std::make_unique<HostMemory>(std::move(tensor))};
}

std::vector<Buffer> make_adjacent_buffers(std::string_view call, const GpuBackend& gpu,
                                          const std::vector<HostTensor>& tensors) {
  std::size_t size_bytes = 0;
  for (const HostTensor& tensor : tensors) {
    size_bytes += tensor.bytes().size();
  }
  const auto memory = std::make_shared<execute::DeviceMemory>(gpu.device(call), size_bytes);
  std::vector<Buffer> buffers;
  std::size_t offset_bytes = 0;
  for (const HostTensor& tensor : tensors) {
    buffers.emplace_back(tensor.dtype(), tensor.shape(),
                         std::make_unique<GpuMemory>(memory, offset_bytes, tensor.bytes()));
    offset_bytes += tensor.bytes().size();
  }
  return buffers;
}

}  // namespace stof::engine
