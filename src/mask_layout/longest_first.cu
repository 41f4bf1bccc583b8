// A radix sort of lengths, from the longest to the shortest: stable, by eight bits a pass. Each
// block counts the digits of its rows, the counts are summed up over digits and blocks, and each
// block writes its rows where the sums say.
#include <algorithm>
#include <bit>
#include <utility>

#include "mask_layout/launch_order.cuh"
#include "mask_layout/scan.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRounds = 8;  // of 32 rows, one after the other, by a warp
constexpr int kBlockRows = kThreads * kRounds;
constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
constexpr unsigned kFullWarp = 0xFFFFFFFF;
static_assert(kThreads == kDigits, "a thread a digit");

struct Keys {
  const std::int32_t* lengths;
  const std::int32_t* numbers;  // null: row i has number i
  std::int64_t rows;
  int shift;

  // The largest digit comes first.
  __device__ int digit(std::int64_t row) const {
    return kDigits - 1 - (lengths[row] >> shift & (kDigits - 1));
  }
  __device__ std::int32_t number(std::int64_t row) const {
    return numbers == nullptr ? static_cast<std::int32_t>(row) : numbers[row];
  }
};

// The row that a lane has in a round of its warp.
__device__ std::int64_t row_of(int round) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return std::int64_t{blockIdx.x} * kBlockRows + (warp * kRounds + round) * 32 + lane;
}

// How many rows of each warp have each digit.
__device__ void count_in_warps(const Keys& keys, std::int32_t (&counts)[kWarps][kDigits]) {
  for (int i = static_cast<int>(threadIdx.x); i < kWarps * kDigits; i += kThreads) {
    counts[i / kDigits][i % kDigits] = 0;
  }
  __syncthreads();
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t row = row_of(round);
    if (row < keys.rows) {
      atomicAdd(&counts[threadIdx.x / 32][keys.digit(row)], 1);
    }
  }
  __syncthreads();
}

// counts[digit][block]
__global__ void __launch_bounds__(kThreads) count_digits(Keys keys, std::int32_t* counts) {
  __shared__ std::int32_t in_warps[kWarps][kDigits];
  await_previous();
  count_in_warps(keys, in_warps);
  std::int32_t count = 0;
  for (const auto& in_warp : in_warps) {
    count += in_warp[threadIdx.x];
  }
  counts[std::int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = count;
}

__global__ void __launch_bounds__(kScanThreads)
    sum_up_digits(std::int32_t* counts, std::int64_t count) {
  await_previous();
  sum_up(counts, count);
}

__global__ void __launch_bounds__(kThreads)
    place_rows(Keys keys, const std::int32_t* sums, std::int32_t* lengths, std::int32_t* numbers) {
  __shared__ std::int32_t places[kWarps][kDigits];
  await_previous();
  count_in_warps(keys, places);
  const std::int64_t at = std::int64_t{threadIdx.x} * gridDim.x + blockIdx.x;
  std::int32_t place = at == 0 ? 0 : sums[at - 1];
  for (auto& of_warp : places) {
    place += std::exchange(of_warp[threadIdx.x], place);
  }
  __syncthreads();
  const unsigned before = (1U << threadIdx.x % 32) - 1;
  std::int32_t* of_warp = places[threadIdx.x / 32];
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t row = row_of(round);
    const bool exists = row < keys.rows;
    const int digit = exists ? keys.digit(row) : kDigits;
    const unsigned equal = __match_any_sync(kFullWarp, digit);
    const int rank = __popc(equal & before);
    if (exists) {
      const std::int32_t to = of_warp[digit] + rank;
      lengths[to] = keys.lengths[row];
      numbers[to] = keys.number(row);
    }
    __syncwarp();
    if (exists && rank == 0) {
      of_warp[digit] += __popc(equal);
    }
    __syncwarp();
  }
}

std::int64_t block_count(std::int64_t rows) {
  return (rows + kBlockRows - 1) / kBlockRows;
}

}  // namespace

std::int64_t digit_count(std::int64_t rows) {
  return kDigits * block_count(rows);
}

void order_longest_first(const std::int32_t* lengths, std::int64_t rows, std::int64_t longest,
                         const SortSpace& space, std::int32_t* order, cuda::Launches& launches) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(longest));
  const auto blocks = static_cast<unsigned>(block_count(rows));
  int passes_left = std::max(1, (bits + kDigitBits - 1) / kDigitBits);
  Keys keys = {.lengths = lengths, .numbers = nullptr, .rows = rows, .shift = 0};
  for (; passes_left > 0; --passes_left) {
    // The last pass writes what is asked for, and those before it take turns.
    const bool is_result = passes_left % 2 == 1;
    std::int32_t* to_lengths = is_result ? space.sorted_lengths : space.spare_lengths;
    std::int32_t* to_numbers = is_result ? order : space.spare_numbers;
    const cuda::LaunchConfig all_rows = behind({.grid = blocks, .block = kThreads});
    launches.add(count_digits, all_rows, keys, space.digits);
    launches.add(sum_up_digits, behind({.grid = 1, .block = kScanThreads}), space.digits,
                 digit_count(rows));
    launches.add(place_rows, all_rows, keys, space.digits, to_lengths, to_numbers);
    keys.lengths = to_lengths;
    keys.numbers = to_numbers;
    keys.shift += kDigitBits;
  }
}

}  // namespace stof::mask_layout
