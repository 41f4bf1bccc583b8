#pragma once

#include <string>

#include "base/device_profile.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Why the plan of a static graph has no launch of a template of the library, for people: what of
// the pattern the graph has not, the first tensor, constraint or dtype that does not fit where it
// has it, or what the template should take where all fits, as others then should take less.
std::string why_unused(const KernelTemplate& kernel, const graph::Ir& ir,
                       const TemplateLibrary& templates, const base::DeviceProfile& device,
                       const BuildLayout& build_layout = {});

}  // namespace stof::fusion
