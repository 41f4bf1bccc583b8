// The keys that each query sees where these are a run: those of its document that a band shows.
#include <algorithm>

#include "base/check.hpp"
#include "mask_layout/launch_order.cuh"
#include "mask_layout/settle.cuh"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

namespace {

constexpr int kThreads = 256;
constexpr int kPiece = 2048;  // offsets that are in shared memory at once

struct Run {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

// The document of a position that lies between the first of some offsets and the last one.
__device__ Run document_among(const std::int32_t* offsets, int count, std::int64_t position) {
  int low = 0;  // the last offset that is known to be at most the position
  for (int high = count - 1; high - low > 1;) {
    const int middle = (low + high) / 2;
    (offsets[middle] <= position ? low : high) = middle;
  }
  return {offsets[low], offsets[low + 1]};
}

// A thread has a row. Each block looks at all offsets, piece by piece, neighbours of which share
// one.
__global__ void __launch_bounds__(kThreads)
    list(const __grid_constant__ Part documents, Grid grid, mask::Band band, std::int32_t* first,
         std::int32_t* end, LayoutReport* report) {
  __shared__ std::int32_t offsets[kPiece];
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kThreads + thread;
  await_previous();
  bool is_valid = true;
  Run run;
  for (std::int64_t begin = 0; begin + 1 < documents.columns; begin += kPiece - 1) {
    const auto count = static_cast<int>(std::min<std::int64_t>(kPiece, documents.columns - begin));
    const auto* values = static_cast<const std::int32_t*>(documents.data) + begin;
    __syncthreads();
    for (int i = thread; i < count; i += kThreads) {
      offsets[i] = values[i];
      is_valid = is_valid && mask_layout::is_valid(documents, grid, begin + i);
    }
    __syncthreads();
    if (offsets[0] <= row && row < offsets[count - 1]) {
      run = document_among(offsets, count, row);
    }
  }
  if (__syncthreads_or(static_cast<int>(!is_valid)) != 0) {
    run = {};
    if (row == 0 && report != nullptr) {
      report->status = kInvalidData;
    }
  }
  if (row < grid.q_len) {
    run.first = std::max(run.first, row + band.first);
    run.end = std::min({run.end, row + band.end, grid.kv_len});
    const bool is_empty = run.first >= run.end;
    first[row] = is_empty ? 0 : static_cast<std::int32_t>(run.first);
    end[row] = is_empty ? 0 : static_cast<std::int32_t>(run.end);
  }
}

}  // namespace

void list_runs(const MaskView& mask, const Layout& layout, const mask::Band& band,
               LayoutReport* report, cuda::Launches& launches) {
  const Grid& grid = layout.grid;
  const Part& documents = mask.inputs[0];
  STOF_CHECK(grid.planes() == 1 && mask.input_count == 1 && documents.kind == PartKind::Documents)
      << "runs of what are no documents";
  launches.add(
      list,
      {.grid = static_cast<unsigned>((grid.q_len + kThreads - 1) / kThreads), .block = kThreads},
      documents, grid, band, layout.rows.first, layout.rows.end, report);
}

}  // namespace stof::mask_layout
