#include "mask_layout/inputs.hpp"

#include "mask_layout/launch_order.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;

// A warp writes a row. Words of 32 bits lie in those of 64 as the GPU counts bytes.
__global__ void __launch_bounds__(kThreads)
    write_bits(MaskInput input, Grid grid, std::uint32_t* bits, LayoutCounts* counts) {
  await_previous();
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= grid.q_len) {
    return;
  }
  const std::int64_t row_words = (grid.kv_len + 63) / 64 * 2;
  std::uint32_t* words = bits + row * row_words;
  for (std::int64_t i = lane; i < row_words; i += kWarp) {
    words[i] = 0;
  }
  __syncwarp();
  const std::int64_t begin = input.row_ptr[row];
  const std::int64_t end = input.row_ptr[row + 1];
  bool is_valid = begin >= 0 && begin <= end && end <= input.count && (row != 0 || begin == 0);
  const auto* columns = static_cast<const std::int32_t*>(input.data);
  for (std::int64_t i = begin + lane; is_valid && i < end; i += kWarp) {
    const std::int32_t column = columns[i];
    is_valid = column >= 0 && column < grid.kv_len;
    if (is_valid) {
      atomicOr(words + column / 32, 1U << (column % 32));
    }
  }
  if (!is_valid) {
    atomicOr(&counts->status, kInvalidData);
  }
}

}  // namespace

void write_input_bits(const MaskInput& input, const Grid& grid, std::uint64_t* bits,
                      LayoutCounts* counts, cuda::Launches& launches) {
  const auto blocks = static_cast<unsigned>((grid.q_len * kWarp + kThreads - 1) / kThreads);
  launches.add(write_bits, behind({.grid = blocks, .block = kThreads}), input, grid,
               reinterpret_cast<std::uint32_t*>(bits), counts);
}

}  // namespace stof::mask_layout
