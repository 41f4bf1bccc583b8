#pragma once

#include <optional>

#include "fusion/attention.hpp"
#include "fusion/modifier.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// What becomes of the setting of a kernel for bands, or for rows that see a run of keys each, where
// scores are modified: these take registers, and some shared memory. By times on an H200 with
// ALiBi, soft caps, and biases by distance and by pair. Nothing where lists are faster.
std::optional<kernel::KernelConfig> band_setting_for_scores(const Use& use,
                                                            kernel::KernelConfig config,
                                                            const Modifier& modifier);
std::optional<kernel::KernelConfig> interval_setting_for_scores(const Use& use,
                                                                kernel::KernelConfig config,
                                                                const Modifier& modifier);

// Whether a setting of lists has registers, and shared memory, for what a modifier reads, and is no
// slower for it. Blocks that have an SM to themselves set all registers apart, and large tiles
// leave none.
bool suits_modifier(const Use& use, const kernel::KernelConfig& config, const AttentionMask& mask);

}  // namespace stof::fusion
