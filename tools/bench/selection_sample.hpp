#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stof/mask.hpp"

namespace stof::bench {

// Shapes of attention that share a mask.
struct SelectionShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 64;
};

// A mask for `length` queries and keys, and the shapes that it is tried on.
struct SelectionGroup {
  std::string family;
  std::string variant;  // "32 to each side"
  std::int64_t length = 0;
  Mask mask;
  std::vector<SelectionShape> shapes;
};

// The sample of tools/bench/selection: 12 families of masks, three densities of each, lengths of
// 128 to 16384, and for each of these two of the eight pairs of 1, 4, 16 or 64 heads in all and 64
// or 128 dimensions, so that each pair is there as often. In an order that is random and always the
// same, so that each part from the front is a sample as well.
std::vector<SelectionGroup> selection_sample();

}  // namespace stof::bench
