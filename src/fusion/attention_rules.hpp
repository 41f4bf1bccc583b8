#pragma once

#include <vector>

#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether a use may be chosen of `uses`, all that fit an attention. Kernels for certain masks whose
// rule is known here may only where the rule gives a setting; others only where no such kernel that
// is faster by these rules has one.
bool is_in_place(const Use& use, const std::vector<Use>& uses, const AttentionMask& mask);

// The settings to choose from: the one that a rule says, none where the rule of the kernel says
// none, else those of `settings`, which the cost model knows, that leave registers to a modifier.
std::vector<kernel::KernelConfig> settings_by_rules(const Use& use, const AttentionMask& mask,
                                                    std::vector<kernel::KernelConfig> settings);

}  // namespace stof::fusion
