#include "fusion/scheme_groups.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

std::vector<int> operators_of(const OperatorOrder& order, const Segment& segment) {
  std::vector<int> operators;
  for (int place = segment.begin; place < segment.end; ++place) {
    operators.push_back(order[static_cast<std::size_t>(place)].op);
  }
  return operators;
}

std::string segment_text(const OperatorOrder& order, const Segment& segment, const graph::Ir& ir) {
  std::vector<std::string> texts;
  for (const int index : operators_of(order, segment)) {
    const graph::Operator& op = ir.operators[static_cast<std::size_t>(index)];
    texts.push_back(
        fmt::format("{} ('{}')", graph::name(op.kind), graph::value_at(ir, op.outputs[0]).name));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<Group> groups_of(const Scheme& scheme, const OperatorOrder& order, const graph::Ir& ir,
                             GroupPlanner& planner) {
  if (scheme.digits().size() != order.size()) {
    throw GraphError(fmt::format("scheme: {} has {} digits, the graph {} has {} operators",
                                 scheme.hex(), scheme.digits().size(), ir.name, order.size()));
  }
  std::vector<Group> groups;
  for (const Segment& segment : scheme.segments()) {
    std::optional<Group> group = planner.best_group(operators_of(order, segment));
    if (!group) {
      throw GraphError(fmt::format(
          "scheme: no template runs segment {} of {}, operators {} to {}: {}", groups.size(),
          scheme.hex(), segment.begin, segment.end - 1, segment_text(order, segment, ir)));
    }
    groups.push_back(*std::move(group));
  }
  return groups;
}

}  // namespace stof::fusion
