#pragma once

#include <optional>

#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"
#include "mask/rows.hpp"

namespace stof::fusion {

// Of block_wise_sm90 its setting for heads of up to 64 dimensions along this band where it is
// faster than kernels for bands, by times on an H200: where queries see all keys, of one tile of
// 128 queries a head, or of so many that tiles of 192 fill their waves. Nothing elsewhere.
std::optional<kernel::KernelConfig> list_setting_for_narrow_heads(const Use& use,
                                                                  const mask::Band& band);

}  // namespace stof::fusion
