#pragma once

#include <optional>

#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"
#include "mask/rows.hpp"

namespace stof::fusion {

// Of block_wise_sm90 its setting for wide heads along this band where it is faster than kernels for
// bands: of a tile of 128 queries and keys a head, by times on an H200; and by times on an H100
// where queries see all keys, in many tiles or one of 192 queries a head, and of causal heads with
// rows that TMA is slow with. Nothing elsewhere.
std::optional<kernel::KernelConfig> list_setting_for_wide_heads(const Use& use,
                                                                const mask::Band& band);

}  // namespace stof::fusion
