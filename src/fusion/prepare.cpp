#include "fusion/prepare.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "fusion/decisions.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/grouped_queries.hpp"
#include "fusion/masks_in_scores.hpp"
#include "fusion/propose.hpp"
#include "fusion/residue_classes.hpp"
#include "fusion/run_time_masks.hpp"

namespace stof::fusion {

namespace {

graph::Ir with_other_rows(graph::Ir ir, MaskArraysByMask& masks) {
  return with_residue_classes(with_grouped_queries(std::move(ir), masks), masks);
}

}  // namespace

graph::Ir prepare(const graph::Ir& ir, const TemplateLibrary& templates,
                  const base::DeviceProfile& device, MaskArraysByMask& masks) {
  const auto predict_us = [&](const graph::Ir& of) {
    const graph::Ir prepared = with_other_rows(of, masks);
    const OperatorOrder order = operator_order(prepared);
    const Decisions none;
    GroupPlanner planner(prepared, order, templates, device, masks, none);
    const std::vector<Proposal> proposals = propose_schemes(prepared, order, planner, 1);
    return proposals.empty() ? std::numeric_limits<double>::infinity()
                             : proposals.front().predicted_us;
  };
  return with_other_rows(with_masks_in_scores(with_kv_lengths(ir), predict_us), masks);
}

}  // namespace stof::fusion
