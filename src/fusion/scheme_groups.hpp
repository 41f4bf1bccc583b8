#pragma once

#include <string>
#include <vector>

#include "fusion/group.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/scheme.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// The operators of a segment, by their indices in the graph.
std::vector<int> operators_of(const OperatorOrder& order, const Segment& segment);

// "matmul ('scores'), add ('sum')"
std::string segment_text(const OperatorOrder& order, const Segment& segment, const graph::Ir& ir);

// The groups that a scheme says, in its order, which is one in which they can run. Throws
// GraphError where it is not of as many operators as the order, or no template runs a segment.
std::vector<Group> groups_of(const Scheme& scheme, const OperatorOrder& order, const graph::Ir& ir,
                             GroupPlanner& planner);

}  // namespace stof::fusion
