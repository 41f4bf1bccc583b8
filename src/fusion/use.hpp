#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "contract/evaluate.hpp"
#include "fusion/group.hpp"
#include "fusion/placement.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// What a hook reads, along the axes of the port that it is attached to.
struct HookTensor {
  int value = -1;
  View view;
};

// A template with everything that it is told about a group, but for its parameters.
struct Use {
  const KernelTemplate* kernel = nullptr;
  contract::ContractScope scope;      // without config
  std::map<std::string, View> ports;  // an absent optional port has none
  std::vector<HookTensor> hook;
  std::string misfit;  // why the template does not take the group; empty where it does

  std::int64_t dim(const std::string& name) const { return scope.dims.at(name); }
};

// Axes of the ports of a copy.
inline constexpr std::size_t kCopyAxes = 4;

using DeviceScalars = decltype(contract::ContractScope::device);

DeviceScalars device_scalars(const base::DeviceProfile& device);

// The group's tensors as the ports of one of its candidates want them:
//   matmul     x [batch, m, k], w [batch, k, n], y [batch, m, n]; leading axes of x are part of m
//              where w has none. In a pattern of several operators x and y are as in the graph
//   reduce_*   x [outer, axis, inner], y [outer, inner]
//   copy       up to 4 axes, as many joined as strides allow
//   all else   leading axes joined to the rank of the port, or axes of extent 1 in front
Use make_use(const Group& group, const Candidate& candidate, const graph::Ir& ir,
             const Readers& readers, const Placement& placement, const DeviceScalars& device);

// The same for a copy of one tensor to another place of equal extents.
Use make_copy(const Candidate& candidate, const View& from, const View& to,
              const DeviceScalars& device);

}  // namespace stof::fusion
