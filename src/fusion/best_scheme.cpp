#include "fusion/best_scheme.hpp"

#include <utility>
#include <vector>

#include "fusion/decisions.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/memory.hpp"
#include "fusion/prepare.hpp"

namespace stof::fusion {

std::optional<Proposal> best_scheme(const graph::Ir& ir, const TemplateLibrary& templates,
                                    const base::DeviceProfile& device, MaskArraysByMask& masks) {
  const graph::Ir prepared = prepare(ir, templates, device, masks);
  const OperatorOrder order = operator_order(prepared);
  const Decisions none;
  GroupPlanner planner(prepared, order, templates, device, masks, none);
  std::vector<Proposal> proposals = propose_schemes(prepared, order, planner, 1);
  if (proposals.empty()) {
    return std::nullopt;
  }
  Proposal best = std::move(proposals.front());
  kernel::Program program;
  for (const int output : Memory(prepared, planner.placement(), program).outputs_to_copy()) {
    best.predicted_us +=
        predicted_us(planner.plan_output(prepared.outputs[static_cast<std::size_t>(output)]));
  }
  return best;
}

}  // namespace stof::fusion
