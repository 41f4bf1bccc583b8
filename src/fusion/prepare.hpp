#pragma once

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// A static graph as it is cut into segments: lengths of keys have values of their own, dense masks
// are part of scores where that should take less time on the device, attentions run over residue
// classes where their masks ask for it. What is prepared stays as it is.
graph::Ir prepare(const graph::Ir& ir, const TemplateLibrary& templates,
                  const base::DeviceProfile& device, MaskArraysByMask& masks);

}  // namespace stof::fusion
