#pragma once

#include <optional>

#include "contract/contract.hpp"
#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether it is a kernel for rows that see a run of keys each that has the parameters of the one
// whose setting is known here; a user's may have others.
bool has_interval_rule(const contract::TemplateContract& contract);

// Of such a kernel its setting for this mask, by times on an H200, which is allowed; nothing where
// another kernel is faster, as one for bands is, or where there is no rule.
std::optional<kernel::KernelConfig> setting_for_intervals(const Use& use,
                                                          const AttentionMask& mask);

}  // namespace stof::fusion
