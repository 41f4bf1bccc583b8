#pragma once

#include <optional>

#include "contract/contract.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether it is a kernel for windows with global tokens that has the parameters of one whose
// setting is known here; a user's may have others.
bool has_global_token_rule(const contract::TemplateContract& contract);

// Of a kernel for such masks its setting for this one, by times on an H200, which is allowed;
// nothing where another kernel is faster, or where there is no rule.
std::optional<kernel::KernelConfig> setting_for_global_tokens(const Use& use);

}  // namespace stof::fusion
