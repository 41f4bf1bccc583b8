#pragma once

#include <cstdint>
#include <vector>

#include "expr/program.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// Where the first table, capture and row slot of a program come to lie among those of its mask.
struct PoolOffsets {
  std::int64_t tables = 0;
  std::int64_t captures = 0;
  int row_slots = 0;
};

// A program as kernels read it. Its scalars are those of masks.
struct LoweredProgram {
  std::vector<Step> row_steps;  // that do not depend on the key and come before the others
  std::vector<Step> key_steps;  // at least one, the last with the result
  int slots = 0;                // that steps leave values in
  int row_slots = 0;
  // Whether all that key_steps do is done for 64 keys of a row at once: they add up lines, which
  // grow by -1, 0 or 1 from key to key, apply one operation to one (is_curve), compare lines with
  // either, draw, and combine truth values.
  bool goes_by_rows = false;
};

LoweredProgram lower_program(const expr::Program& program, const PoolOffsets& offsets);

}  // namespace stof::mask_layout
