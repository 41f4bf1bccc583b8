#include "mask_layout/fill.hpp"

#include <algorithm>

#include "mask_layout/views.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr std::size_t kMaxBlocks = 2048;

__global__ void __launch_bounds__(kThreads)
    fill_words(std::uint32_t* data, std::uint32_t word, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * kThreads;
  for (std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    data[i] = word;
  }
}

template <typename T>
__global__ void store_value(T* to, T value) {
  *to = value;
}

}  // namespace

void fill(void* data, std::uint32_t word, std::size_t size_bytes, cuda::Launches& launches) {
  const std::size_t count = size_bytes / sizeof(word);
  const std::size_t blocks =
      std::clamp<std::size_t>((count + kThreads - 1) / kThreads, 1, kMaxBlocks);
  launches.add(fill_words, {.grid = static_cast<unsigned>(blocks), .block = kThreads},
               static_cast<std::uint32_t*>(data), word, count);
}

template <typename T>
void store(T* to, const T& value, cuda::Launches& launches) {
  launches.add(store_value<T>, {}, to, value);
}

template void store(Part*, const Part&, cuda::Launches&);
template void store(CaptureView*, const CaptureView&, cuda::Launches&);

}  // namespace stof::mask_layout
