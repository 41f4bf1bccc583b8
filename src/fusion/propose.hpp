#pragma once

#include <cstddef>
#include <vector>

#include "base/device_profile.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/scheme.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

struct Proposal {
  Scheme scheme;
  double predicted_us = 0;  // of all launches of its segments
};

inline constexpr std::size_t kProposals = 5;

// The schemes of a static graph that should take the least time on the device, the best first. It
// is exact: of all cuts of operator_order() into segments that templates run, the sum of the times
// that Chooser predicts is least. Each further one is the best in which some kind of segment that
// an earlier one has is nowhere: equal layers are cut alike, since one that was cut in another way
// would say nothing new. Of equal times that with longer segments goes first. Fewer than `count`
// where there are no more; none where some operator fits no template.
//
// Equal segments are looked at once. Copies that several segments need are counted for each.
std::vector<Proposal> propose_schemes(const graph::Ir& ir, const TemplateLibrary& templates,
                                      const base::DeviceProfile& device,
                                      const BuildLayout& build_layout = {},
                                      std::size_t count = kProposals);

// The same with a planner of that graph, which is left as it was.
std::vector<Proposal> propose_schemes(const graph::Ir& ir, const OperatorOrder& order,
                                      GroupPlanner& planner, std::size_t count);

}  // namespace stof::fusion
