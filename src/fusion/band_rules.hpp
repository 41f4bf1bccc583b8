#pragma once

#include <optional>

#include "contract/contract.hpp"
#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether it is a kernel for bands that has the parameters of one whose setting is known here; a
// user's may have others.
bool has_band_rule(const contract::TemplateContract& contract);

// Whether it is one of those that have all keys of a query tile, or of a head, at once.
bool has_all_keys_at_once(const contract::TemplateContract& contract);
// Whether it is the one that walks along short windows.
bool walks_along_windows(const contract::TemplateContract& contract);
// Whether it is the one whose blocks go from one short head to the next.
bool goes_from_head_to_head(const contract::TemplateContract& contract);

// Of a kernel for bands its setting for this one, by times on an H200, which is allowed; nothing
// where another kernel is faster, or where there is no rule.
std::optional<kernel::KernelConfig> setting_for_bands(const Use& use, const AttentionMask& mask);

// Of block_wise_sm90, by times, where it is the fastest along a band: wide_lists.hpp and
// narrow_lists.hpp say where. Nothing of other kernels, and none for scores that are modified: they
// take registers, which it has not.
std::optional<kernel::KernelConfig> list_setting_for_bands(const Use& use,
                                                           const AttentionMask& mask);

}  // namespace stof::fusion
