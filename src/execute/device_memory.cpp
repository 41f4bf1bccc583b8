#include "execute/device_memory.hpp"

#include "base/check.hpp"
#include "cuda/device_scope.hpp"

namespace stof::execute {

namespace {

cuda::DeviceArray<std::byte> allocate(int device, std::size_t size_bytes) {
  const cuda::DeviceScope scope(device);
  return cuda::DeviceArray<std::byte>(size_bytes);
}

// The default stream waits for no stream of its users, and a copy of pageable memory may go on
// after its call: both ends are waited for.
void copy(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind) {
  STOF_CUDA(cudaDeviceSynchronize());
  STOF_CUDA(cudaMemcpy(to, from, size_bytes, kind));
  STOF_CUDA(cudaDeviceSynchronize());
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::size_t size_bytes)
    : device_(device), memory_(allocate(device, size_bytes)) {
  const cuda::DeviceScope scope(device_);
  STOF_CUDA(cudaMemset(data(), 0, size_bytes));
  STOF_CUDA(cudaDeviceSynchronize());
}

void DeviceMemory::write(std::span<const std::byte> bytes, std::size_t offset_bytes) const {
  check(bytes.size(), offset_bytes);
  const cuda::DeviceScope scope(device_);
  copy(data() + offset_bytes, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
}

void DeviceMemory::read(std::span<std::byte> bytes, std::size_t offset_bytes) const {
  check(bytes.size(), offset_bytes);
  const cuda::DeviceScope scope(device_);
  copy(bytes.data(), data() + offset_bytes, bytes.size(), cudaMemcpyDeviceToHost);
}

void DeviceMemory::check(std::size_t size_bytes, std::size_t offset_bytes) const {
  STOF_CHECK(offset_bytes <= memory_.size() && size_bytes <= memory_.size() - offset_bytes)
      << "device memory: " << size_bytes << " bytes from " << offset_bytes << " on are not in its "
      << memory_.size();
}

}  // namespace stof::execute
