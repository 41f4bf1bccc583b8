// What intervals say of tiles, and whether inputs hold what they may.
#pragma once

#include <algorithm>

#include "mask/attention_tiles.hpp"
#include "mask_layout/layout.hpp"
#include "mask_layout/region_truth.cuh"
#include "mask_layout/stages.hpp"
#include "mask_layout/tile_place.cuh"

namespace stof::mask_layout {

__device__ inline Region region_of(const Grid& grid, const TilePlace& place) {
  return {.batch = place.batch,
          .head = place.head,
          .query = {place.query, std::min(grid.q_len, place.query + mask::kTile) - 1},
          .key = {place.key, std::min(grid.kv_len, place.key + mask::kTile) - 1}};
}

__device__ inline bool is_valid(const Part& input, const Grid& grid, std::int64_t i) {
  const auto* values = static_cast<const std::int32_t*>(input.data);
  if (input.kind == PartKind::KeyLengths) {
    return values[i] >= 0 && values[i] <= grid.kv_len;
  }
  return i == 0 ? values[0] == 0
                : values[i - 1] <= values[i] && values[i] <= std::max(grid.q_len, grid.kv_len);
}

// Lengths and offsets, by a block; what is longer is checked where it is read.
__device__ inline void check_inputs(const MaskView& mask, const Grid& grid, std::int32_t* status) {
  for (int n = 0; n < mask.input_count; ++n) {
    const Part& input = mask.inputs[n];
    const std::int64_t values = input.kind == PartKind::KeyLengths  ? grid.mask_batch
                                : input.kind == PartKind::Documents ? input.columns
                                                                    : 0;
    for (std::int64_t i = threadIdx.x; i < values; i += blockDim.x) {
      if (!is_valid(input, grid, i)) {
        atomicOr(status, kInvalidData);
      }
    }
  }
}

// mask::kAllSeen, kNoneSeen, kDrawn or kOpen.
__device__ inline std::int32_t class_of(unsigned truth) {
  return truth == kAnyAlways  ? mask::kAllSeen
         : truth == kAnyNever ? mask::kNoneSeen
         : truth == kAsDrawn  ? kDrawn
                              : kOpen;
}

}  // namespace stof::mask_layout
