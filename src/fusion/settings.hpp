#pragma once

#include <optional>
#include <vector>

#include "contract/evaluate.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether there is a value for each parameter, whatever it is, and nothing else.
bool has_names(const contract::TemplateContract& contract, const kernel::KernelConfig& config);

// Whether the restrictions allow the setting, and a launch with it can be. It becomes that of the
// scope, so that of many settings none takes a copy.
bool is_allowed(const contract::TemplateContract& contract, contract::ContractScope& scope,
                const kernel::KernelConfig& config);

// Whether it has one of its values for each parameter of the template, and is allowed.
bool is_setting(const Use& use, const kernel::KernelConfig& config);

// The settings that restrictions allow, those near the default first.
std::vector<kernel::KernelConfig> nearest_first(const Use& use);

// The default, else the allowed setting nearest to it; nothing where none is allowed.
std::optional<kernel::KernelConfig> plain_config(const Use& use);

}  // namespace stof::fusion
