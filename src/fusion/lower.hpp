#pragma once

#include <optional>
#include <vector>

#include "base/device_profile.hpp"
#include "contract/evaluate.hpp"
#include "fusion/choose.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"
#include "kernel/kernel_spec.hpp"
#include "kernel/program.hpp"

namespace stof::fusion {

struct Lowered {
  std::vector<kernel::KernelSpec> specs;        // one for each of program.kernels
  std::vector<contract::ContractScope> scopes;  // and for which of its launches it was set
  kernel::Program program;
  std::vector<std::vector<Option>> options;  // of each launch: what runs, then what was not chosen
  std::optional<Scheme> scheme;              // of the groups, where a code says it (scheme_of)
};

// A graph of static shapes (see normalise_but_attention, bind_dims) as launches of template
// kernels: each operator goes to the template that should take the least time (see Chooser) of
// those whose pattern and constraints take it, with as many elementwise operators behind it as its
// hooks do. Throws GraphError where no template takes an operator, naming the constraints that do
// not hold. `build_layout` builds the layouts of masks that are known; by default the host does.
Lowered lower(const graph::Ir& ir, const TemplateLibrary& templates,
              const base::DeviceProfile& device, const BuildLayout& build_layout = {});

}  // namespace stof::fusion
