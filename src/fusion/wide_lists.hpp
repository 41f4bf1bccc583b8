#pragma once

#include <optional>

#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"
#include "mask/rows.hpp"

namespace stof::fusion {

// Whether lists may be faster than the kernel that has one short head after the other, which is as
// fast as tiles of 192 queries where rows fill lines, and faster where heads have more than three
// tiles and a half.
bool may_be_lists_of_short_heads(const Use& use);

// Of block_wise_sm90 its setting for wide heads along this band where it is faster than kernels for
// bands, by times on an H200 and an H100: of a tile of 128 queries and keys a head; of causal heads
// with rows that TMA is slow with; and where queries see all keys, of many tiles, of one or two
// tiles a head, of one of 128 queries an SM, and of more than 192 dimensions. Nothing elsewhere.
std::optional<kernel::KernelConfig> list_setting_for_wide_heads(const Use& use,
                                                                const mask::Band& band);

}  // namespace stof::fusion
