#include "fusion/group.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "fusion/placement.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

using graph::Ir;
using graph::OpKind;

namespace {

// Every tensor that a chain reads takes registers: with twice as many, kernels spill. Products have
// few to spare.
constexpr std::size_t kMostOperands = 16;
constexpr std::size_t kMostOperandsOfProducts = 4;
constexpr std::size_t kFreeOperandsOfRows = 2;

// What an operator of the step can be; nothing for the pattern "copy", which is none.
std::vector<OpKind> kinds_of(const contract::PatternStep& step) {
  std::vector<OpKind> kinds;
  const auto add = [&kinds](const std::string& name) {
    if (const auto kind = graph::op_kind_from_name(name)) {
      kinds.push_back(*kind);
    }
  };
  add(step.op);
  std::for_each(step.alternatives.begin(), step.alternatives.end(), add);
  return kinds;
}

}  // namespace

std::vector<Candidate> copy_candidates(const TemplateLibrary& templates) {
  std::vector<Candidate> candidates;
  for (const KernelTemplate& kernel : templates) {
    const auto& pattern = kernel.contract.pattern;
    if (pattern.size() == 1 && pattern[0].op == "copy") {
      candidates.push_back({.kernel = &kernel, .match = {}});
    }
  }
  if (candidates.empty()) {
    throw GraphError("lower: no template copies tensors (pattern \"y = copy(x)\")");
  }
  return candidates;
}

const contract::Port* misshapen_port(const contract::TemplateContract& contract, const Match& match,
                                     const Ir& ir) {
  std::map<std::string, std::int64_t> dims;
  for (const contract::Port& port : contract.ports) {
    const auto value = match.values.find(port.name);
    if (contract.pattern.size() == 1 || value == match.values.end()) {
      continue;
    }
    const Shape& shape = graph::value_at(ir, value->second).shape;
    const auto rank = static_cast<int>(port.shape.size());
    const bool turns = is_turned(contract, match, port.name);
    for (int axis = 1; axis <= std::min(rank, shape.rank()); ++axis) {
      const int place = turns && axis <= 2 ? 3 - axis : axis;  // from the port's end
      const std::string& dim = port.shape[static_cast<std::size_t>(rank - place)].dim;
      std::int64_t extent = shape[-axis].value();
      for (int outer = axis + 1; axis == rank && outer <= shape.rank(); ++outer) {
        extent *= shape[-outer].value();
      }
      if (!dim.empty() && dims.emplace(dim, extent).first->second != extent) {
        return &port;
      }
    }
  }
  return nullptr;
}

GroupFinder::GroupFinder(const Ir& ir, const TemplateLibrary& templates)
    : ir_(ir), copies_(copy_candidates(templates)), readers_(ir) {
  for (const KernelTemplate& kernel : templates) {
    add_pattern(kernel);
  }
}

void GroupFinder::add_pattern(const KernelTemplate& kernel) {
  Pattern pattern{.kernel = &kernel};
  std::vector<OpKind> first;
  for (const contract::PatternStep& step : kernel.contract.pattern) {
    const std::vector<OpKind> kinds = kinds_of(step);
    pattern.apart += std::all_of(kinds.begin(), kinds.end(), is_elementwise) ? 0 : 1;
    if (!step.is_optional) {
      first = pattern.required++ == 0 ? kinds : first;
    }
  }
  for (const OpKind kind : first) {
    patterns_[kind].push_back(pattern);
  }
  most_in_pattern_ = std::max(most_in_pattern_, pattern.apart);
}

std::vector<Group> GroupFinder::groups_at(int op, const std::vector<bool>& is_free) const {
  return groups_at(op, is_free, {});
}

std::vector<Group> GroupFinder::groups_at(int op, const std::vector<bool>& is_free,
                                          Wanted wanted) const {
  const OpKind kind = at(op).kind;
  if (kind == OpKind::Concat) {
    return {copy_group(op)};
  }
  std::vector<Group> groups;
  const auto known = patterns_.find(kind);
  const auto patterns = known == patterns_.end() ? std::span<const Pattern>() : known->second;
  for (const Pattern& pattern : patterns) {
    if (pattern.required > wanted.most || pattern.apart < wanted.apart) {
      continue;
    }
    const KernelTemplate& kernel = *pattern.kernel;
    for (Match& match : find_matches(kernel.contract, ir_, readers_, op, is_free)) {
      if (misshapen_port(kernel.contract, match, ir_) != nullptr) {
        continue;
      }
      auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
        return other.operators == match.operators;
      });
      if (group == groups.end()) {
        group = groups.insert(group, {.operators = match.operators, .candidates = {}, .chain = {}});
      }
      // Operands that may change places give a match each.
      const bool is_known =
          std::any_of(group->candidates.begin(), group->candidates.end(), [&](const auto& other) {
            return other.kernel == &kernel && other.match.values == match.values;
          });
      if (!is_known) {
        group->candidates.push_back({.kernel = &kernel, .match = std::move(match)});
      }
    }
  }
  std::erase_if(groups, [&](const Group& group) { return reads_its_own(group); });
  for (std::size_t i = 0; i < groups.size(); ++i) {  // which it may add to
    if (std::optional<Group> other = split_by_hook(groups[i])) {
      groups.insert(groups.begin() + static_cast<std::ptrdiff_t>(i) + 1, *std::move(other));
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.operators.size() > b.operators.size();
  });
  if (is_elementwise(kind)) {
    groups.push_back(copy_group(op));
  }
  return groups;
}

std::optional<Group> GroupFinder::longer(const Group& group,
                                         const std::vector<bool>& is_free) const {
  if (group.chain.value < 0) {
    return std::nullopt;
  }
  Group result = group;
  std::erase_if(result.candidates, [&](const Candidate& candidate) {
    return !candidate.match.operators.empty() && hooked_value(candidate) != group.chain.value;
  });
  const bool is_product = at(group.operators.front()).kind == OpKind::MatMul;
  if (!grow(result.chain, ir_, readers_, is_free) ||
      count_operands(result.chain) > (is_product ? kMostOperandsOfProducts : kMostOperands) ||
      !operands_join(result)) {
    return std::nullopt;
  }
  for (std::size_t i = group.chain.statements.size(); i < result.chain.statements.size(); ++i) {
    result.operators.push_back(result.chain.statements[i].op);
  }
  return reads_its_own(result) ? std::nullopt : std::optional(std::move(result));
}

std::vector<Group> GroupFinder::groups_of(std::span<const int> operators) const {
  std::vector<bool> is_free(ir_.operators.size(), false);
  Wanted wanted{.most = operators.size()};
  for (const int op : operators) {
    is_free[static_cast<std::size_t>(op)] = true;
    wanted.apart += is_elementwise(at(op).kind) ? 0 : 1;
  }
  std::vector<Group> groups;
  for (const int op : operators) {
    for (Group& group : groups_at(op, is_free, wanted)) {
      std::optional<Group> all = std::move(group);
      while (all && all->operators.size() < operators.size()) {
        all = longer(*all, is_free);
      }
      if (all) {
        groups.push_back(*std::move(all));
      }
    }
  }
  return groups;
}

// Of a chain, but for a few numbers for each row: they take next to no registers.
std::size_t GroupFinder::count_operands(const Chain& chain) const {
  const std::vector<int> others = other_operands(chain);
  const auto of_rows =
      static_cast<std::size_t>(std::count_if(others.begin(), others.end(), [&](int value) {
        const Shape& shape = graph::value_at(ir_, value).shape;
        return shape.rank() > 0 && shape[-1] == Dim(1);
      }));
  return others.size() - std::min(of_rows, kFreeOperandsOfRows);
}

// The value that an elementwise operator is about: its first operand that has the full shape.
Group GroupFinder::copy_group(int op) const {
  Group group{.operators = {op}, .candidates = copies_, .chain = {}};
  if (at(op).kind == OpKind::Concat) {
    return group;
  }
  const Shape& shape = graph::value_at(ir_, at(op).outputs[0]).shape;
  const auto full = std::find_if(at(op).inputs.begin(), at(op).inputs.end(), [&](int value) {
    return graph::value_at(ir_, value).shape == shape;
  });
  group.chain.value = full == at(op).inputs.end() ? at(op).inputs[0] : *full;
  group.chain.statements = {{.op = op, .operands = at(op).inputs, .result = at(op).outputs[0]}};
  return group;
}

// What a candidate lets a chain follow; -1 where it does not.
int GroupFinder::hooked_value(const Candidate& candidate) {
  const auto& hooks = candidate.kernel->contract.hooks;
  const auto hook = hooks.find("epilogue");
  return hook == hooks.end() ? -1 : candidate.match.values.at(hook->second);
}

std::optional<Group> GroupFinder::split_by_hook(Group& group) {
  const auto hooked =
      std::find_if(group.candidates.begin(), group.candidates.end(),
                   [](const Candidate& candidate) { return hooked_value(candidate) >= 0; });
  group.chain.value = hooked == group.candidates.end() ? -1 : hooked_value(*hooked);
  const auto others = std::stable_partition(group.candidates.begin(), group.candidates.end(),
                                            [&](const Candidate& candidate) {
                                              const int value = hooked_value(candidate);
                                              return value < 0 || value == group.chain.value;
                                            });
  if (others == group.candidates.end()) {
    return std::nullopt;
  }
  Group other{.operators = group.operators,
              .candidates = {std::make_move_iterator(others),
                             std::make_move_iterator(group.candidates.end())},
              .chain = {}};
  group.candidates.erase(others, group.candidates.end());
  return other;
}

// Whether the axes of every other operand join as those of the hooked value do: it is constant
// along all of the leading ones, or along none. Elementwise templates take more, and what is not
// float.
bool GroupFinder::operands_join(const Group& group) const {
  const graph::Value& result = graph::value_at(ir_, group.chain.result());
  const Shape& shape = result.shape;
  if (group.candidates.front().match.operators.empty()) {
    return true;
  }
  if (!is_floating(result.dtype)) {
    return false;
  }
  const OpKind kind = at(group.operators.front()).kind;
  const bool is_reduction = kind >= OpKind::ReduceSum && kind <= OpKind::ReduceMax;
  // A matrix product may keep its rows apart from the axes before them.
  const int inner = kind == OpKind::MatMul ? 2 : 1;
  const auto joins = [&](int value) {
    const Shape& operand = graph::value_at(ir_, value).shape;
    if (is_reduction && !(operand == shape)) {
      return false;
    }
    int constant = 0;
    int varying = 0;
    for (int axis = inner + 1; axis <= shape.rank(); ++axis) {
      if (shape[-axis] == Dim(1)) {
        continue;
      }
      const bool is_constant = axis > operand.rank() || operand[-axis] == Dim(1);
      ++(is_constant ? constant : varying);
    }
    return constant == 0 || varying == 0;
  };
  const std::vector<int> others = other_operands(group.chain);
  return std::all_of(others.begin(), others.end(), joins);
}

bool GroupFinder::reads_its_own(const Group& group) const {
  const auto is_own = [&](int value, bool is_direct) {
    int producer = graph::value_at(ir_, value).producer;
    while (producer >= 0 && is_view(at(producer))) {
      producer = graph::value_at(ir_, at(producer).inputs[0]).producer;
      is_direct = true;
    }
    return is_direct && std::find(group.operators.begin(), group.operators.end(), producer) !=
                            group.operators.end();
  };
  const std::vector<int> others = other_operands(group.chain);
  return std::any_of(others.begin(), others.end(),
                     [&](int value) { return is_own(value, true); }) ||
         std::any_of(group.operators.begin(), group.operators.end(), [&](int op) {
           const std::vector<int> read = values_read(at(op));
           return std::any_of(read.begin(), read.end(),
                              [&](int value) { return is_own(value, false); });
         });
}

}  // namespace stof::fusion
