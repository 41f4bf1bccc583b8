#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "fusion/group.hpp"
#include "fusion/placement.hpp"
#include "graph/op_info.hpp"

// A yardstick for schemes: groups as a simple rule makes them.
namespace stof::testing {

using fusion::Group;
using fusion::GroupFinder;
using graph::Ir;
using graph::OpClass;
using graph::OpKind;

// The greedy rule: what to take next, and whether all groups can still run one after another.
class Grouper {
 public:
  Grouper(const Ir& ir, const fusion::TemplateLibrary& templates)
      : ir_(ir),
        finder_(ir, templates),
        is_free_(ir.operators.size(), true),
        group_of_(ir.operators.size(), -1) {}

  std::vector<Group> run() {
    for (std::size_t op = 0; op < ir_.operators.size(); ++op) {
      if (fusion::is_view(ir_.operators[op])) {
        is_free_[op] = false;
      }
    }
    for_each_free(
        [&](int op) { return graph::op_info(at(op).kind).op_class == OpClass::ComputeIntensive; });
    for_each_free(
        [&](int op) { return at(op).kind == OpKind::LayerNorm || at(op).kind == OpKind::RmsNorm; });
    for_each_free([&](int op) { return !fusion::is_elementwise(at(op).kind); });
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
    STOF_CHECK(largest != groups.end()) << graph::name(at(op).kind);
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
      for (const int value : fusion::values_read(ir_.operators[op])) {
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

// In an order in which they can run. Compute-intensive operators and attention take the chains
// behind them, then normalisations the additions in front of them and the chains behind; what is
// left goes alone or in chains. The operators of a group need not stand together in any order.
inline std::vector<Group> greedy_groups(const Ir& ir, const fusion::TemplateLibrary& templates) {
  return Grouper(ir, templates).run();
}

}  // namespace stof::testing
