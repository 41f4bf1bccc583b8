#include <bit>

#include <cub/device/device_radix_sort.cuh>

#include "cuda/check.hpp"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    write_numbers(std::int64_t rows, std::int32_t* numbers) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (r < rows) {
    numbers[r] = static_cast<std::int32_t>(r);
  }
}

}  // namespace

std::size_t sort_temporary_bytes(std::int64_t rows) {
  std::size_t bytes = 0;
  const std::int32_t* in = nullptr;
  std::int32_t* out = nullptr;
  STOF_CUDA(cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, in, out, in, out, rows));
  return bytes;
}

void order_longest_first(const std::int32_t* lengths, std::int64_t rows, std::int64_t longest,
                         const SortSpace& space, std::int32_t* order, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((rows + kThreads - 1) / kThreads);
  write_numbers<<<blocks, kThreads, 0, stream>>>(rows, space.numbers);
  STOF_CUDA(cudaGetLastError());
  const int bits = std::bit_width(static_cast<std::uint64_t>(longest));
  std::size_t bytes = space.temporary_bytes;
  const std::int32_t* numbers = space.numbers;
  STOF_CUDA(cub::DeviceRadixSort::SortPairsDescending(space.temporary, bytes, lengths,
                                                      space.sorted_lengths, numbers, order, rows, 0,
                                                      bits, stream));
}

}  // namespace stof::mask_layout
