#include "mask_layout/inputs.hpp"

#include <algorithm>

#include "mask_layout/launch_order.cuh"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr int kRowsOfBlock = kThreads / kWarp;
constexpr std::size_t kMostSharedBytes = 48 << 10;

// Bits of a row. Those of one word are put together as long as a lane's columns fall into it.
class RowBits {
 public:
  __device__ RowBits(std::uint32_t* words, std::int64_t kv_len)
      : words_(words), kv_len_(static_cast<unsigned>(kv_len)) {}

  __device__ void add(std::int32_t column) {
    const auto key = static_cast<unsigned>(column);
    if (key >= kv_len_) {
      is_valid_ = false;
      return;
    }
    if (key / 32 != word_) {
      write();
      word_ = key / 32;
      bits_ = 0;
    }
    bits_ |= 1U << key % 32;
  }
  __device__ void add(int4 columns) {
    add(columns.x);
    add(columns.y);
    add(columns.z);
    add(columns.w);
  }

  // Whether all were in range.
  __device__ bool finish() const {
    write();
    return is_valid_;
  }

 private:
  __device__ void write() const {
    if (bits_ != 0) {
      atomicOr(words_ + word_, bits_);
    }
  }

  std::uint32_t* words_;
  unsigned kv_len_;
  unsigned word_ = 0;
  unsigned bits_ = 0;
  bool is_valid_ = true;
};

// By a warp: the columns from `begin` to `end` - 1, of which 16 bytes are asked for at a time, many
// before the first of them is looked at: a row may be as long as there are keys.
__device__ bool add_columns(const std::int32_t* columns, std::int64_t begin, std::int64_t end,
                            unsigned lane, RowBits bits) {
  constexpr int kAtOnce = 8;  // pieces of four
  const auto shift =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(columns) / sizeof(int) % 4);
  const auto* pieces = reinterpret_cast<const int4*>(columns - shift);
  const std::int64_t first_piece = (begin + shift + 3) / 4;
  const std::int64_t end_piece = (end + shift) / 4;
  const std::int64_t head_end = std::min(end, 4 * first_piece - shift);
  const std::int64_t tail_begin = std::max(head_end, 4 * end_piece - shift);
  const std::int64_t in_head = begin + lane;
  const std::int64_t in_tail = tail_begin + lane;
  const std::int32_t head = in_head < head_end ? columns[in_head] : 0;
  const std::int32_t tail = in_tail < end ? columns[in_tail] : 0;
#pragma unroll 1
  for (std::int64_t piece = first_piece + lane; piece < end_piece; piece += kWarp * kAtOnce) {
    int4 keys[kAtOnce];
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      keys[n] = pieces[std::min(piece + n * kWarp, end_piece - 1)];  // the last one again
    }
#pragma unroll
    for (const int4& four : keys) {
      bits.add(four);
    }
  }
  if (in_head < head_end) {
    bits.add(head);
  }
  if (in_tail < end) {
    bits.add(tail);
  }
  return bits.finish();
}

// A warp writes a row, whose bits are put together in shared memory if all of the block's rows fit
// it. Words of 32 bits lie in those of 64 as the GPU counts bytes.
template <bool IsShared>
__global__ void __launch_bounds__(kThreads)
    write_bits(MaskInput input, Grid grid, std::uint32_t* bits, std::int32_t* status) {
  extern __shared__ std::uint32_t shared[];
  await_previous();
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  if (row >= grid.q_len) {
    return;
  }
  const std::int64_t row_words = grid.tile_cols * 2;
  std::uint32_t* const result = bits + row * row_words;
  std::uint32_t* const words = IsShared ? shared + threadIdx.x / kWarp * row_words : result;
  for (std::int64_t i = lane; i < row_words; i += kWarp) {
    words[i] = 0;
  }
  __syncwarp();
  const std::int64_t begin = input.row_ptr[row];
  const std::int64_t end = input.row_ptr[row + 1];
  bool is_valid = begin >= 0 && begin <= end && end <= input.count && (row != 0 || begin == 0);
  is_valid = is_valid && add_columns(static_cast<const std::int32_t*>(input.data), begin, end, lane,
                                     {words, grid.kv_len});
  if (!is_valid) {
    atomicOr(status, kInvalidData);
  }
  __syncwarp();
  for (std::int64_t i = lane; IsShared && i < row_words; i += kWarp) {
    result[i] = words[i];
  }
}

}  // namespace

void write_input_bits(const MaskInput& input, const Grid& grid, std::uint64_t* bits,
                      std::int32_t* status, cuda::Launches& launches) {
  const auto bytes = static_cast<std::size_t>(grid.tile_cols * kRowsOfBlock) * sizeof(*bits);
  const bool is_shared = bytes <= kMostSharedBytes;
  launches.add(
      is_shared ? write_bits<true> : write_bits<false>,
      behind({.grid = static_cast<unsigned>((grid.q_len + kRowsOfBlock - 1) / kRowsOfBlock),
              .block = kThreads,
              .dynamic_shared_bytes = is_shared ? bytes : 0}),
      input, grid, reinterpret_cast<std::uint32_t*>(bits), status);
}

}  // namespace stof::mask_layout
