#pragma once

#include <cstdint>
#include <vector>

#include "expr/program.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// Where the first table and capture of a program come to lie among those of its mask.
struct PoolOffsets {
  std::int64_t tables = 0;
  std::int64_t captures = 0;
};

// The program as kernels read it. Its scalars are those of masks.
std::vector<Step> lower_program(const expr::Program& program, const PoolOffsets& offsets);

}  // namespace stof::mask_layout
