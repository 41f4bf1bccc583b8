#pragma once

#include <nlohmann/json.hpp>

#include "fusion/attention.hpp"
#include "fusion/use.hpp"

namespace stof::fusion {

// What a template is rendered with: only what decides its text, so that uses that differ in
// run-time arguments alone share a kernel. ../../templates/README.md lists the names. `chain` is
// that of the group.
nlohmann::json variables(const Use& use, const Chain& chain, const graph::Ir& ir,
                         const AttentionMask* mask);

}  // namespace stof::fusion
