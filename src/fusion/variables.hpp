#pragma once

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "contract/evaluate.hpp"
#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "mask/features.hpp"

namespace stof::fusion {

// What the contract and the scope of a use decide: all but hooks, mask and modifiers. `present` are
// the ports that the use has.
nlohmann::json scope_variables(const contract::TemplateContract& contract,
                               const contract::ContractScope& scope,
                               const std::set<std::string>& present);

// What a template of attention knows of its mask.
nlohmann::json mask_variables(mask::MaskClass mask_class, const contract::ContractScope& scope);

// What a template is rendered with: only what decides its text, so that uses that differ in
// run-time arguments alone share a kernel. ../../templates/README.md lists the names. `chain` is
// that of the group.
nlohmann::json variables(const Use& use, const Chain& chain, const graph::Ir& ir,
                         const AttentionMask* mask);

}  // namespace stof::fusion
