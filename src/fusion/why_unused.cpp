#include "fusion/why_unused.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fusion/decisions.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/match.hpp"
#include "fusion/prepare.hpp"
#include "fusion/scheme.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using contract::PatternStep;
using contract::Port;
using graph::Ir;

std::string port_text(const Port& port) {
  std::vector<std::string> dims;
  for (const contract::Extent& extent : port.shape) {
    dims.push_back(extent.dim.empty() ? extent.value.text() : extent.dim);
  }
  return fmt::format("{} [{}]", port.name, fmt::join(dims, ", "));
}

class Search {
 public:
  Search(const KernelTemplate& kernel, const Ir& ir, GroupPlanner& planner)
      : kernel_(kernel), ir_(ir), planner_(planner), is_free_(ir.operators.size(), true) {}

  std::string reason() {
    if (std::string missing = missing_operator(); !missing.empty()) {
      return missing;
    }
    for (int op = 0; op < static_cast<int>(ir_.operators.size()); ++op) {
      if (const auto time_us = look_at(op)) {
        return fmt::format("it should take {:.1f} us for {}, and the plan less with others",
                           *time_us, result_of(op));
      }
    }
    return !misfit_.empty()
               ? misfit_
               : "nowhere do the operators of its pattern follow each other as it has them, with "
                 "nothing else that reads what is between them";
  }

 private:
  const std::string& result_of(int op) const {
    return graph::value_at(ir_, ir_.operators[static_cast<std::size_t>(op)].outputs[0]).name;
  }

  bool has(const std::string& name) const {
    return std::ranges::any_of(
        ir_.operators, [&](const graph::Operator& op) { return graph::name(op.kind) == name; });
  }

  std::string missing_operator() const {
    for (const PatternStep& step : kernel_.contract.pattern) {
      if (!step.is_optional && step.op != "copy" && !has(step.op) &&
          std::ranges::none_of(step.alternatives, [&](const auto& name) { return has(name); })) {
        return fmt::format("the graph, made of primitive operators, has no {}", step.op);
      }
    }
    return {};
  }

  // What the template should take where its pattern begins with the operator; nothing where it
  // does not fit there, and the first reason is kept.
  std::optional<double> look_at(int op) {
    const Readers& readers = planner_.finder().readers();
    for (const Match& match : find_matches(kernel_.contract, ir_, readers, op, is_free_)) {
      if (const Port* const port = misshapen_port(kernel_.contract, match, ir_)) {
        const graph::Value& value = graph::value_at(ir_, match.values.at(port->name));
        keep(op, fmt::format("'{}' {} does not go with the port {}", value.name, value.shape.text(),
                             port_text(*port)));
      }
    }
    for (Group& group : planner_.finder().groups_at(op, is_free_)) {
      std::erase_if(group.candidates,
                    [&](const Candidate& one) { return one.kernel->file != kernel_.file; });
      std::string misfits;
      if (group.candidates.empty()) {
        continue;
      }
      if (const auto launches = planner_.plan(group, misfits)) {
        return predicted_us(*launches);
      }
      const std::size_t begin = misfits.find(": ");
      keep(op, begin == std::string::npos ? misfits : misfits.substr(begin + 2));
    }
    return std::nullopt;
  }

  void keep(int op, const std::string& misfit) {
    if (misfit_.empty()) {
      misfit_ = fmt::format("it does not fit at {}: {}", result_of(op),
                            misfit.substr(0, misfit.find('\n')));
    }
  }

  const KernelTemplate& kernel_;
  const Ir& ir_;
  GroupPlanner& planner_;
  std::vector<bool> is_free_;
  std::string misfit_;
};

}  // namespace

std::string why_unused(const KernelTemplate& kernel, const Ir& ir, const TemplateLibrary& templates,
                       const base::DeviceProfile& device, const BuildLayout& build_layout) {
  MaskArraysByMask masks(build_layout);
  const Ir prepared = prepare(ir, templates, device, masks);
  const OperatorOrder order = operator_order(prepared);
  const Decisions none;
  GroupPlanner planner(prepared, order, templates, device, masks, none);
  return Search(kernel, prepared, planner).reason();
}

}  // namespace stof::fusion
