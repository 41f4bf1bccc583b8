#include "graph/colouring.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "expr/semantics.hpp"
#include "graph/dim_text.hpp"
#include "graph/encode.hpp"
#include "graph/op_info.hpp"

namespace stof::graph {

namespace {

// Roles of edges besides the places of operands, and colours of what is no tensor.
constexpr Colour kExtent = Colour{1} << 32U;
constexpr Colour kSegment = kExtent + 1;
constexpr Colour kLeaf = kExtent + 2;
constexpr Colour kSymbol = kExtent + 3;
constexpr Colour kOutput = kExtent + 4;

// Without names; an extent of several symbols is known by its bounds.
std::string dim_label(const Dim& dim) {
  if (dim.is_static()) {
    return dim.text();
  }
  const auto symbols = dim.symbols();
  if (symbols.size() > 1) {
    return fmt::format("{} {} {}", symbols.size(), dim.min(), dim.max());
  }
  const auto& [name, range] = *symbols.begin();
  return parse_dim(dim.text(), {{name, Dim::symbol("x", range.first, range.second)}}).text();
}

// Which operators the outputs need.
std::vector<bool> find_needed(const Ir& ir) {
  std::vector<bool> is_needed(ir.operators.size());
  const auto need = [&](int value) {
    const int producer = ir.values[at(value)]->producer;
    if (producer >= 0) {
      is_needed[at(producer)] = true;
    }
  };
  for (const Output& output : ir.outputs) {
    need(output.value);
  }
  for (std::size_t i = ir.operators.size(); i-- > 0;) {
    if (is_needed[i]) {
      std::ranges::for_each(operand_ids(ir.operators[i]), need);
    }
  }
  return is_needed;
}

class Builder {
 public:
  explicit Builder(const Ir& ir) : ir_(ir), values_(ir.values.size(), -1) {}

  ColouredGraph build() && {
    const std::vector<bool> is_needed = find_needed(ir_);
    for (std::size_t i = 0; i < ir_.operators.size(); ++i) {
      if (is_needed[i]) {
        add(ir_.operators[i]);
      }
    }
    for (const Output& output : ir_.outputs) {
      const int value = leaf_or_result(output.value);
      graph_.is_output[at(value)] = true;
      graph_.colours[at(value)] = combine(graph_.colours[at(value)], kOutput);
    }
    return std::move(graph_);
  }

 private:
  int add_value(Colour colour, int id) {
    graph_.colours.push_back(colour);
    graph_.ids.push_back(id);
    graph_.is_output.push_back(false);
    return static_cast<int>(graph_.colours.size()) - 1;
  }

  void read_extents(ColouredGraph::Node& node, const std::vector<Dim>& extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      for (const auto& [name, range] : extents[i].symbols()) {
        const auto [found, is_new] = symbols_.emplace(name, 0);
        if (is_new) {
          const auto [min, max] = range;
          found->second = add_value(
              combine(combine(kSymbol, static_cast<Colour>(min)), static_cast<Colour>(max)), -1);
        }
        node.reads.push_back({.role = combine(kExtent, i), .value = found->second});
      }
    }
  }

  int leaf_or_result(int id) {
    int& value = values_[at(id)];
    if (value < 0) {
      const Value& leaf = *ir_.values[at(id)];
      base::Hasher hasher;
      encode(hasher, leaf, {.value = {}, .dim = dim_label});
      value = add_value(hasher.digest().low, id);
      ColouredGraph::Node node{.label = kLeaf, .makes = {{.role = 0, .value = value}}};
      read_extents(node, {leaf.shape.dims().begin(), leaf.shape.dims().end()});
      if (!node.reads.empty()) {
        graph_.nodes.push_back(std::move(node));
      }
    }
    return value;
  }

  // What the operator is but for its operands, of which only is told which are the same.
  Colour label(const Operator& op, const std::vector<int>& operands) const {
    const auto place = [&](int id) {
      return static_cast<std::uint64_t>(std::ranges::find(operands, id) - operands.begin());
    };
    base::Hasher hasher;
    encode(hasher, op, {.value = place, .dim = dim_label});
    return hasher.digest().low;
  }

  void add(const Operator& op) {
    const std::vector<int> operands = operand_ids(op);
    ColouredGraph::Node node{.label = label(op, operands)};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      node.reads.push_back({.role = i, .value = leaf_or_result(operands[i])});
    }
    read_extents(node, attribute_extents(op));
    if (op.segment >= 0) {
      const auto [found, is_new] = segments_.emplace(op.segment, 0);
      if (is_new) {
        found->second = add_value(kSegment, -1);
      }
      node.reads.push_back({.role = kSegment, .value = found->second});
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const int value = add_value(0, op.outputs[i]);
      values_[at(op.outputs[i])] = value;
      node.makes.push_back({.role = i, .value = value});
    }
    graph_.nodes.push_back(std::move(node));
  }

  const Ir& ir_;
  std::vector<int> values_;  // of the ids
  std::map<std::string, int> symbols_;
  std::map<int, int> segments_;
  ColouredGraph graph_;
};

std::size_t steps(const ColouredGraph& graph) {
  std::size_t steps = graph.colours.size();
  for (const ColouredGraph::Node& node : graph.nodes) {
    steps += node.reads.size() + node.makes.size();
  }
  return steps;
}

std::size_t count_distinct(std::vector<Colour> colours) {
  std::ranges::sort(colours);
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

}  // namespace

ColouredGraph coloured_graph(const Ir& ir) {
  return Builder(ir).build();
}

Colour combine(Colour a, Colour b) {
  const auto mixed = [](Colour colour) {
    return static_cast<Colour>(expr::mix(static_cast<std::int64_t>(colour)));
  };
  return mixed(mixed(a) ^ b);
}

Colour combine_unordered(std::vector<Colour> colours) {
  std::ranges::sort(colours);
  Colour all = colours.size();
  for (const Colour colour : colours) {
    all = combine(all, colour);
  }
  return all;
}

std::vector<bool> find_unique(const std::vector<Colour>& colours) {
  std::vector<Colour> sorted = colours;
  std::ranges::sort(sorted);
  std::vector<bool> is_unique;
  is_unique.reserve(colours.size());
  for (const Colour colour : colours) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), colour);
    is_unique.push_back(last - first == 1);
  }
  return is_unique;
}

// A sum over the edges does not depend on their order.
void recolour(ColouredGraph& graph) {
  std::vector<Colour> down = graph.colours;
  for (const ColouredGraph::Node& node : graph.nodes) {
    Colour whole = node.label;
    for (const auto& [role, value] : node.reads) {
      whole += combine(role, down[at(value)]);
    }
    for (const auto& [role, value] : node.makes) {
      down[at(value)] = combine(combine(whole, role), down[at(value)]);
    }
  }
  std::vector<Colour> up(down.size());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    Colour whole = node->label;
    for (const auto& [role, value] : node->makes) {
      whole += combine(combine(role, down[at(value)]), up[at(value)]);
    }
    for (const auto& [role, value] : node->reads) {
      up[at(value)] += combine(role, whole);
    }
  }
  for (std::size_t i = 0; i < down.size(); ++i) {
    graph.colours[i] = combine(down[i], up[i]);
  }
}

bool refine(ColouredGraph& graph, Budget& budget) {
  const std::size_t round = steps(graph);
  std::size_t before = count_distinct(graph.colours);
  while (budget.steps >= round) {
    budget.steps -= round;
    recolour(graph);
    const std::size_t after = count_distinct(graph.colours);
    if (after == before) {
      return true;
    }
    before = after;
  }
  return false;
}

}  // namespace stof::graph
