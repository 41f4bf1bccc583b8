#pragma once

#include <cstdint>

#include "stof/mask.hpp"

namespace stof::mask {

// The attention that a mask is for.
struct Extent {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;

  friend bool operator==(const Extent&, const Extent&) = default;
};

// Throws GraphError where the mask cannot be for this attention: an extent that is not in 1 to
// kMaxLength; data of other lengths, or for another batch or number of heads; a table that is
// indexed by batch, head, q_pos or k_pos alone and has more than one entry but too few.
void check_extent(const Mask& mask, const Extent& extent);

}  // namespace stof::mask
