#pragma once

#include <optional>

#include "contract/contract.hpp"
#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether it is attention/few_keys, for bands, or attention/few_keys_bits or few_keys_sm90, for
// other masks.
bool has_few_keys(const contract::TemplateContract& contract);

// The setting of attention/few_keys, nothing where others are faster or the template is another.
std::optional<kernel::KernelConfig> few_keys_of_band(const Use& use);
// The same of attention/few_keys_bits and attention/few_keys_sm90.
std::optional<kernel::KernelConfig> few_keys_by_bits(const Use& use, const AttentionMask& mask);

}  // namespace stof::fusion
