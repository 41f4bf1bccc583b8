#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "contract/evaluate.hpp"
#include "fusion/choose.hpp"
#include "fusion/decisions.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"
#include "kernel/kernel_spec.hpp"
#include "kernel/program.hpp"

namespace stof::fusion {

// What one launch of a program is for.
struct LaunchOrigin {
  int group = -1;          // that it belongs to, by its place; -1 for a copy to an output
  nlohmann::json problem;  // that it solves (see problem.hpp)
  std::string refusal;     // why what was decided for it does not run; empty where it does
};

struct Lowered {
  std::vector<kernel::KernelSpec> specs;        // one for each of program.kernels
  std::vector<contract::ContractScope> scopes;  // and for which of its launches it was set
  kernel::Program program;
  std::vector<std::vector<Option>> options;  // of each launch: what runs, then what was not chosen
  std::vector<LaunchOrigin> origins;         // of each launch
  std::vector<std::vector<int>> groups;      // the operators of each, in the order of the graph
  Scheme scheme = Scheme({});                // of the groups
};

// A graph of static shapes (see normalise_but_attention, bind_dims) as launches of template
// kernels: cut by the scheme that should take the least time (see propose_schemes), each segment
// run by the template that should take the least (see Chooser). Throws GraphError where no template
// takes an operator, naming the constraints that do not hold. `build_layout` builds the layouts of
// masks that are known; by default the host does.
//
// What is decided goes before what should be the fastest; settings have no say in the scheme.
// Throws GraphError where no template runs a segment of the scheme; a setting that its kernel does
// not take (any more) is not used.
Lowered lower(const graph::Ir& ir, const TemplateLibrary& templates,
              const base::DeviceProfile& device, const BuildLayout& build_layout = {},
              const Decisions& decisions = {});

}  // namespace stof::fusion
