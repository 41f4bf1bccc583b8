#include "mask_layout/inputs.hpp"

#include <algorithm>

#include "mask_layout/fill.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;

__global__ void __launch_bounds__(kThreads)
    check_lengths(const std::int32_t* lengths, std::int64_t count, std::int64_t kv_len,
                  LayoutCounts* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count && (lengths[i] < 0 || lengths[i] > kv_len)) {
    atomicOr(&counts->status, kInvalidData);
  }
}

__global__ void __launch_bounds__(kThreads)
    check_offsets(const std::int32_t* offsets, std::int64_t count, std::int64_t last,
                  LayoutCounts* counts) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) {
    return;
  }
  const bool is_valid =
      i == 0 ? offsets[0] == 0 : offsets[i - 1] <= offsets[i] && offsets[i] <= last;
  if (!is_valid) {
    atomicOr(&counts->status, kInvalidData);
  }
}

// A warp writes a row. Words of 32 bits lie in those of 64 as the GPU counts bytes.
__global__ void __launch_bounds__(kThreads)
    write_bits(MaskInput input, Grid grid, std::uint32_t* bits, LayoutCounts* counts) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  if (row >= grid.q_len) {
    return;
  }
  const std::int64_t begin = input.row_ptr[row];
  const std::int64_t end = input.row_ptr[row + 1];
  bool is_valid = begin >= 0 && begin <= end && end <= input.count && (row != 0 || begin == 0);
  std::uint32_t* words = bits + row * ((grid.kv_len + 63) / 64 * 2);
  const auto* columns = static_cast<const std::int32_t*>(input.data);
  for (std::int64_t i = begin + threadIdx.x % kWarp; is_valid && i < end; i += kWarp) {
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

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

void prepare_input(const MaskInput& input, const Grid& grid, std::int64_t batch,
                   std::uint64_t* bits, LayoutCounts* counts, cuda::Launches& launches) {
  const auto* integers = static_cast<const std::int32_t*>(input.data);
  switch (input.form) {
    case InputForm::KeyLengths:
      launches.add(check_lengths, {.grid = blocks_for(batch), .block = kThreads}, integers, batch,
                   grid.kv_len, counts);
      break;
    case InputForm::CuSeqlens:
      launches.add(check_offsets, {.grid = blocks_for(input.count), .block = kThreads}, integers,
                   input.count, std::max(grid.q_len, grid.kv_len), counts);
      break;
    case InputForm::Csr: {
      const std::int64_t words = (grid.kv_len + 63) / 64 * grid.q_len;
      fill(bits, 0, sizeof(*bits) * words, launches);
      launches.add(write_bits, {.grid = blocks_for(grid.q_len * kWarp), .block = kThreads}, input,
                   grid, reinterpret_cast<std::uint32_t*>(bits), counts);
      break;
    }
    case InputForm::Dense:
      break;
  }
}

}  // namespace stof::mask_layout
