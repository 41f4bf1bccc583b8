#include <cstddef>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/colouring.hpp"

namespace stof::graph {

namespace {

class Parts {
 public:
  explicit Parts(const ColouredGraph& graph)
      : graph_(graph),
        is_fixed_(find_unique(graph.colours)),
        parents_(graph.colours.size()),
        places_(graph.colours.size()) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }

  std::vector<ColouredGraph> take() && {
    for (const ColouredGraph::Node& node : graph_.nodes) {
      join(node);
    }
    for (std::size_t i = 0; i < graph_.colours.size(); ++i) {
      if (!is_fixed_[i]) {
        add_value(static_cast<int>(i));
      }
    }
    for (const ColouredGraph::Node& node : graph_.nodes) {
      add_node(node);
    }
    return std::move(parts_);
  }

 private:
  int root(int value) {
    while (parents_[at(value)] != value) {
      value = parents_[at(value)] = parents_[at(parents_[at(value)])];
    }
    return value;
  }

  void join(const ColouredGraph::Node& node) {
    int first = -1;
    for (const auto* edges : {&node.reads, &node.makes}) {
      for (const ColouredGraph::Edge& edge : *edges) {
        if (!is_fixed_[at(edge.value)]) {
          first = first < 0 ? edge.value : first;
          parents_[at(root(edge.value))] = root(first);
        }
      }
    }
  }

  ColouredGraph& part_of(int value) {
    const auto [found, is_new] = indices_.emplace(root(value), parts_.size());
    if (is_new) {
      parts_.emplace_back();
    }
    return parts_[found->second];
  }

  void add_value(int value) {
    ColouredGraph& part = part_of(value);
    places_[at(value)] = static_cast<int>(part.colours.size());
    part.colours.push_back(graph_.colours[at(value)]);
    part.ids.push_back(graph_.ids[at(value)]);
    part.is_output.push_back(graph_.is_output[at(value)]);
  }

  // Edges to what is fixed become part of the label.
  void add_node(const ColouredGraph::Node& node) {
    ColouredGraph::Node rest{.label = node.label};
    int any = -1;
    const auto keep = [&](const std::vector<ColouredGraph::Edge>& edges) {
      std::vector<ColouredGraph::Edge> kept;
      for (const auto& [role, value] : edges) {
        if (is_fixed_[at(value)]) {
          rest.label += combine(role, graph_.colours[at(value)]);
        } else {
          kept.push_back({.role = role, .value = places_[at(value)]});
          any = value;
        }
      }
      return kept;
    };
    rest.reads = keep(node.reads);
    rest.makes = keep(node.makes);
    if (any >= 0) {
      part_of(any).nodes.push_back(std::move(rest));
    }
  }

  const ColouredGraph& graph_;
  std::vector<bool> is_fixed_;
  std::vector<int> parents_;
  std::vector<int> places_;  // of values in their parts
  std::unordered_map<int, std::size_t> indices_;
  std::vector<ColouredGraph> parts_;
};

}  // namespace

std::vector<ColouredGraph> take_apart(const ColouredGraph& graph) {
  return Parts(graph).take();
}

}  // namespace stof::graph
