#pragma once

#include <cstdint>

#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// The parameter `order` of band_sm90 in this setting, by times on an H200 and an H100: 0, heads
// side by side; 1, the longest rows of several batch elements first; 3, tiles of a head side by
// side. What 2 is, pairs of long and short tiles, goes with a setting. `per_row` is how many tiles
// of 64 keys 64 queries see, in the mean.
std::int64_t order_of_tiles(const Use& use, const kernel::KernelConfig& config, double per_row);

// Whether the longest rows of several batch elements are best side by side, where rows are uneven:
// where blocks of an element are few, which one after the other would each end with short rows
// alone. Of many elements with short rows this is little, and keys of several of them leave L2
// before they are read again, those of wide heads that others share sooner.
bool has_longest_first(const Use& use);

// Whether values are best asked for when keys are there, by times on an H200: where all keys of a
// tile come at once, to blocks that are all on an SM at once (2 to 7 % less). Keys are there sooner
// then, and values in time; where blocks wait for others to end, these end later (0 to 4 % more).
bool has_late_values(const Use& use, const kernel::KernelConfig& config);

}  // namespace stof::fusion
