#pragma once

#include <optional>

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/propose.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// The scheme of a static graph that should take the least time, which counts the copies to outputs
// that no kernel can write itself. Nothing where some operator fits no template.
std::optional<Proposal> best_scheme(const graph::Ir& ir, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device, MaskArraysByMask& masks);

}  // namespace stof::fusion
