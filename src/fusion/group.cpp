#include "fusion/group.hpp"

#include <algorithm>
#include <cstddef>
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

namespace {

using graph::Ir;
using graph::OpClass;
using graph::OpKind;

// Every tensor that a chain reads takes registers: with twice as many, kernels spill. Products have
// few to spare.
constexpr std::size_t kMostOperands = 16;
constexpr std::size_t kMostOperandsOfProducts = 4;

// The greedy rule: what to take next, and whether all groups can still run one after another.
class Grouper {
 public:
  Grouper(const Ir& ir, const TemplateLibrary& templates)
      : ir_(ir),
        finder_(ir, templates),
        is_free_(ir.operators.size(), true),
        group_of_(ir.operators.size(), -1) {}

  std::vector<Group> run() {
    for (std::size_t op = 0; op < ir_.operators.size(); ++op) {
      if (is_view(ir_.operators[op])) {
        is_free_[op] = false;
      }
    }
    for_each_free(
        [&](int op) { return graph::op_info(at(op).kind).op_class == OpClass::ComputeIntensive; });
    for_each_free(
        [&](int op) { return at(op).kind == OpKind::LayerNorm || at(op).kind == OpKind::RmsNorm; });
    for_each_free([&](int op) { return !is_elementwise(at(op).kind); });
    for_each_free([](int) { return true; });
    return in_running_order();
  }

 private:
  const graph::Operator& at(int op) const { return ir_.operators[static_cast<std::size_t>(op)]; }

  template <typename Predicate>
  void for_each_free(Predicate is_meant) {
    for (int op = 0; op < static_cast<int>(ir_.operators.size()); ++op) {
      if (is_free_[static_cast<std::size_t>(op)] && is_meant(op)) {
        add_group(op);
      }
    }
  }

  void add_group(int op) {
    std::vector<Group> groups = finder_.groups_at(op, is_free_);
    const auto largest = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return would_be_acyclic(group.operators);
    });
    if (largest == groups.end()) {
      throw GraphError(fmt::format("lower: no template has a pattern for {} ('{}')",
                                   graph::name(at(op).kind),
                                   graph::value_at(ir_, at(op).outputs[0]).name));
    }
    Group group = std::move(*largest);
    place(group);
    for (auto longer = finder_.longer(group, is_free_);
         longer && would_be_acyclic(longer->operators); longer = finder_.longer(group, is_free_)) {
      group = *std::move(longer);
      place(group);
    }
    groups_.push_back(std::move(group));
  }

  void place(const Group& group) {
    for (const int op : group.operators) {
      is_free_[static_cast<std::size_t>(op)] = false;
      group_of_[static_cast<std::size_t>(op)] = static_cast<int>(groups_.size());
    }
  }

  // Whether all groups could still run one after another with these operators in one.
  bool would_be_acyclic(const std::vector<int>& together) const {
    if (together.size() < 2) {
      return true;
    }
    std::vector<int> node_of = nodes();
    const int node = node_of[static_cast<std::size_t>(together.front())];
    for (const int op : together) {
      node_of[static_cast<std::size_t>(op)] = node;
    }
    return !topological(node_of).empty();
  }

  // A number for each operator, the same for those of one group.
  std::vector<int> nodes() const {
    std::vector<int> node_of(ir_.operators.size());
    std::vector<int> first(groups_.size() + 1, -1);
    for (std::size_t op = 0; op < node_of.size(); ++op) {
      const int group = group_of_[op];
      if (group >= 0 && first[static_cast<std::size_t>(group)] < 0) {
        first[static_cast<std::size_t>(group)] = static_cast<int>(op);
      }
      node_of[op] = group < 0 ? static_cast<int>(op) : first[static_cast<std::size_t>(group)];
    }
    return node_of;
  }

  // The nodes in an order in which each comes after those that it reads, the lowest number first
  // where there is a choice; empty where there is a circle.
  std::vector<int> topological(const std::vector<int>& node_of) const {
    const std::size_t count = node_of.size();
    std::vector<std::vector<int>> next(count);
    std::vector<int> waits_for(count, 0);
    std::vector<bool> is_node(count, false);
    for (std::size_t op = 0; op < count; ++op) {
      is_node[static_cast<std::size_t>(node_of[op])] = true;
      for (const int value : values_read(ir_.operators[op])) {
        const int producer = ir_.values[static_cast<std::size_t>(value)]->producer;
        if (producer >= 0 && node_of[static_cast<std::size_t>(producer)] != node_of[op]) {
          next[static_cast<std::size_t>(node_of[static_cast<std::size_t>(producer)])].push_back(
              node_of[op]);
          ++waits_for[static_cast<std::size_t>(node_of[op])];
        }
      }
    }
    std::vector<int> order;
    std::vector<int> ready;
    std::size_t node_count = 0;
    for (std::size_t op = count; op-- > 0;) {
      node_count += is_node[op] ? 1 : 0;
      if (is_node[op] && waits_for[op] == 0) {
        ready.push_back(static_cast<int>(op));
      }
    }
    const auto later = [](int a, int b) { return a > b; };
    std::make_heap(ready.begin(), ready.end(), later);
    while (!ready.empty()) {
      std::pop_heap(ready.begin(), ready.end(), later);
      order.push_back(ready.back());
      ready.pop_back();
      for (const int node : next[static_cast<std::size_t>(order.back())]) {
        if (--waits_for[static_cast<std::size_t>(node)] == 0) {
          ready.push_back(node);
          std::push_heap(ready.begin(), ready.end(), later);
        }
      }
    }
    return order.size() == node_count ? order : std::vector<int>();
  }

  std::vector<Group> in_running_order() {
    std::vector<Group> ordered;
    const std::vector<int> order = topological(nodes());
    STOF_CHECK(!order.empty() || ir_.operators.empty()) << "groups wait for each other";
    for (const int op : order) {
      const int group = group_of_[static_cast<std::size_t>(op)];
      if (group >= 0) {
        ordered.push_back(std::move(groups_[static_cast<std::size_t>(group)]));
      }
    }
    return ordered;
  }

  const Ir& ir_;
  GroupFinder finder_;
  std::vector<bool> is_free_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

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

GroupFinder::GroupFinder(const Ir& ir, const TemplateLibrary& templates)
    : ir_(ir), templates_(templates), copies_(copy_candidates(templates)), readers_(ir) {}

std::vector<Group> GroupFinder::groups_at(int op, const std::vector<bool>& is_free) const {
  const OpKind kind = at(op).kind;
  if (is_elementwise(kind) || kind == OpKind::Concat) {
    return {copy_group(op)};
  }
  std::vector<Group> groups;
  for (const KernelTemplate& kernel : templates_) {
    for (Match& match : find_matches(kernel.contract, ir_, readers_, op, is_free)) {
      if (!has_shapes(kernel.contract, match)) {
        continue;
      }
      auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
        return other.operators == match.operators;
      });
      if (group == groups.end()) {
        group = groups.insert(group, {.operators = match.operators, .candidates = {}, .chain = {}});
      }
      group->candidates.push_back({.kernel = &kernel, .match = std::move(match)});
    }
  }
  std::erase_if(groups, [&](const Group& group) { return reads_its_own(group); });
  for (Group& group : groups) {
    group.chain.value = hooked_value(group.candidates);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.operators.size() > b.operators.size();
  });
  return groups;
}

std::optional<Group> GroupFinder::longer(const Group& group,
                                         const std::vector<bool>& is_free) const {
  if (group.chain.value < 0) {
    return std::nullopt;
  }
  Group result = group;
  const bool is_product = at(group.operators.front()).kind == OpKind::MatMul;
  if (!grow(result.chain, ir_, readers_, is_free) ||
      other_operands(result.chain).size() >
          (is_product ? kMostOperandsOfProducts : kMostOperands) ||
      !operands_join(result)) {
    return std::nullopt;
  }
  result.operators.push_back(result.chain.statements.back().op);
  return reads_its_own(result) ? std::nullopt : std::optional(std::move(result));
}

std::optional<Group> GroupFinder::group_of(std::span<const int> operators) const {
  std::vector<bool> is_free(ir_.operators.size(), false);
  for (const int op : operators) {
    is_free[static_cast<std::size_t>(op)] = true;
  }
  for (const int op : operators) {
    for (Group& group : groups_at(op, is_free)) {
      std::optional<Group> all = std::move(group);
      while (all && all->operators.size() < operators.size()) {
        all = longer(*all, is_free);
      }
      if (all) {
        return all;
      }
    }
  }
  return std::nullopt;
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

// Whether the tensors of a pattern of several operators can have the shapes of its ports at all:
// which of two addends is the bias, say. Patterns of one operator have canonical forms of their
// own (see make_use).
bool GroupFinder::has_shapes(const contract::TemplateContract& contract, const Match& match) const {
  std::map<std::string, std::int64_t> dims;
  for (const contract::Port& port : contract.ports) {
    const auto value = match.values.find(port.name);
    if (contract.pattern.size() == 1 || value == match.values.end()) {
      continue;
    }
    const Shape& shape = graph::value_at(ir_, value->second).shape;
    const auto rank = static_cast<int>(port.shape.size());
    for (int axis = 1; axis <= std::min(rank, shape.rank()); ++axis) {
      const std::string& dim = port.shape[static_cast<std::size_t>(rank - axis)].dim;
      std::int64_t extent = shape[-axis].value();
      for (int outer = axis + 1; axis == rank && outer <= shape.rank(); ++outer) {
        extent *= shape[-outer].value();
      }
      if (!dim.empty() && dims.emplace(dim, extent).first->second != extent) {
        return false;
      }
    }
  }
  return true;
}

// What all candidates let a chain follow; -1 where one of them does not.
int GroupFinder::hooked_value(const std::vector<Candidate>& candidates) {
  std::optional<int> value;
  for (const Candidate& candidate : candidates) {
    const auto& hooks = candidate.kernel->contract.hooks;
    const auto hook = hooks.find("epilogue");
    const int hooked = hook == hooks.end() ? -1 : candidate.match.values.at(hook->second);
    if (value.value_or(hooked) != hooked) {
      return -1;
    }
    value = hooked;
  }
  return value.value_or(-1);
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

std::vector<Group> make_groups(const Ir& ir, const TemplateLibrary& templates) {
  return Grouper(ir, templates).run();
}

}  // namespace stof::fusion
