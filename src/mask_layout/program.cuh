// The program of a mask, where threads read it fast.
#pragma once

#include <cstdint>
#include <cstring>

#include "mask_layout/views.hpp"

namespace stof::mask_layout {

__device__ inline Step load_step(const Step* step) {
  const int4 words = *reinterpret_cast<const int4*>(step);
  Step loaded;
  memcpy(&loaded, &words, sizeof(loaded));
  return loaded;
}

// Shared memory of a block for parts and steps.
struct ProgramStore {
  static constexpr int kParts = 16;
  static constexpr int kSteps = 128;

  alignas(16) std::int64_t parts[kParts * sizeof(Part) / sizeof(std::int64_t)];
  alignas(16) int4 steps[kSteps];
};

// A mask with its parts and steps where they are read.
struct Program {
  const MaskView& mask;
  const Part* parts;
  const Step* steps;

  // Of those that come behind the parts.
  __device__ const Part& input(int i) const { return mask.inputs[i - mask.part_count]; }
};

// Parts and steps are in the store where they fit. Every thread of the block calls it; the block
// has to synchronise before it reads them.
__device__ inline Program stored(const MaskView& mask, ProgramStore& store) {
  static_assert(sizeof(Part) % sizeof(std::int64_t) == 0 && sizeof(Step) == sizeof(int4));
  Program program{.mask = mask, .parts = mask.parts, .steps = mask.steps};
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  if (mask.part_count <= ProgramStore::kParts) {
    const auto* from = reinterpret_cast<const std::int64_t*>(mask.parts);
    const int words = mask.part_count * static_cast<int>(sizeof(Part) / sizeof(std::int64_t));
    for (int i = thread; i < words; i += threads) {
      store.parts[i] = from[i];
    }
    program.parts = reinterpret_cast<const Part*>(store.parts);
  }
  if (mask.step_count <= ProgramStore::kSteps) {
    const auto* from = reinterpret_cast<const int4*>(mask.steps);
    for (int i = thread; i < mask.step_count; i += threads) {
      store.steps[i] = from[i];
    }
    program.steps = reinterpret_cast<const Step*>(store.steps);
  }
  return program;
}

}  // namespace stof::mask_layout
