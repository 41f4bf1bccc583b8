// Individualise and refine, as in McKay and Piperno, "Practical graph isomorphism, II", 2014: where
// outputs are of one colour, each of them in turn gets a colour of its own, what follows from that
// is found out, and the least result counts. Two things keep the tree small. Parts that only meet
// in what has a colour of its own are arranged one by one. And where two choices lead to the same
// result, the one taken for the other is a symmetry, so what it moves to a choice that was tried
// need not be tried.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/canonical.hpp"
#include "graph/colouring.hpp"
#include "graph/encode.hpp"

namespace stof::graph {

namespace {

constexpr std::size_t kMaxSteps = std::size_t{1} << 21U;
constexpr int kMaxDepth = 256;
constexpr Colour kChosen = 1;

// Ids that a symmetry is known to move onto each other.
class Orbits {
 public:
  bool are_one(int a, int b) { return find(a) == find(b); }

  // The symmetry moves each id to the image at its position.
  void join(const std::vector<int>& ids, const std::vector<int>& images) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      join(ids[i], images[i]);
    }
  }

  void join(const Orbits& other) {
    for (const auto& [id, parent] : other.parents_) {
      join(id, parent);
    }
  }

 private:
  int find(int id) {
    for (auto found = parents_.find(id); found != parents_.end() && found->second != id;
         found = parents_.find(id)) {
      const auto above = parents_.find(found->second);
      id = found->second;
      if (above != parents_.end()) {
        found->second = above->second;
      }
    }
    return id;
  }

  void join(int a, int b) {
    if (!are_one(a, b)) {
      parents_[find(a)] = find(b);
    }
  }

  std::unordered_map<int, int> parents_;
};

// The outputs of a coloured graph, as ids of values in the canonical order. Graphs of one
// certificate are the same, and what stands at one position plays one part in both.
struct Arrangement {
  std::vector<int> outputs;
  Colour certificate = 0;
  Orbits orbits = {};  // of symmetries that were met on the way
};

// Outputs with a colour of their own, in the order of the colours.
std::vector<int> fixed_outputs(const ColouredGraph& graph) {
  const std::vector<bool> is_fixed = find_unique(graph.colours);
  std::map<Colour, int> found;
  for (std::size_t i = 0; i < graph.colours.size(); ++i) {
    if (graph.is_output[i] && is_fixed[i]) {
      found.emplace(graph.colours[i], graph.ids[i]);
    }
  }
  std::vector<int> ids;
  ids.reserve(found.size());
  for (const auto& [colour, id] : found) {
    ids.push_back(id);
  }
  return ids;
}

// Values of the smallest set of outputs that share a colour; of the least colour among those of one
// size.
std::vector<int> find_tied(const ColouredGraph& graph) {
  std::map<Colour, std::vector<int>> classes;
  for (std::size_t i = 0; i < graph.colours.size(); ++i) {
    if (graph.is_output[i]) {
      classes[graph.colours[i]].push_back(static_cast<int>(i));
    }
  }
  const std::vector<int>* smallest = nullptr;
  for (const auto& [colour, values] : classes) {
    if (values.size() > 1 && (smallest == nullptr || values.size() < smallest->size())) {
      smallest = &values;
    }
  }
  return smallest == nullptr ? std::vector<int>() : *smallest;
}

// How far a search goes: with the first choice wherever there is one, or for the least result. A
// first result is as good as any for telling that two graphs are the same, not that they are not.
enum class Effort : std::uint8_t { First, Least };

// The choices tried among tied outputs.
struct Trials {
  std::optional<Arrangement> least;
  Colour least_colours = 0;                   // right after that choice
  std::vector<int> tried;                     // ids
  std::map<Colour, std::vector<int>> firsts;  // first results, by certificate
  Orbits orbits;

  bool is_known(int id) {
    return std::ranges::any_of(tried, [&](int other) { return orbits.are_one(other, id); });
  }

  // Whether another choice had this first result, which makes the two one.
  bool join_same(const Arrangement& first) {
    const auto [same, is_new] = firsts.emplace(first.certificate, first.outputs);
    if (!is_new) {
      orbits.join(same->second, first.outputs);
    }
    return !is_new;
  }

  void offer(Arrangement found, Colour colours) {
    orbits.join(found.orbits);
    const bool is_less =
        !least || colours < least_colours || found.certificate < least->certificate;
    if (is_less) {
      least = std::move(found);
      least_colours = colours;
    } else if (found.certificate == least->certificate) {
      orbits.join(least->outputs, found.outputs);
    }
  }
};

class Search {
 public:
  explicit Search(Budget& budget) : budget_(budget) {}

  // Of a refined graph; nothing where that takes too long.
  std::optional<Arrangement> arrange(const ColouredGraph& graph, Effort effort) {
    if (depth_ == kMaxDepth) {
      return std::nullopt;
    }
    ++depth_;
    std::optional<Arrangement> arrangement = arrange_parts(graph, take_apart(graph), effort);
    --depth_;
    return arrangement;
  }

 private:
  struct Choice {
    ColouredGraph graph;
    Colour colours = 0;  // all of them
  };

  std::optional<Arrangement> arrange_parts(const ColouredGraph& graph,
                                           const std::vector<ColouredGraph>& parts, Effort effort) {
    const bool is_whole = parts.size() == 1 && parts.front().colours.size() == graph.colours.size();
    if (!is_whole) {
      return put_together(graph, parts, effort);
    }
    return effort == Effort::First ? choose_first(graph) : choose_least(graph);
  }

  // What has a colour of its own comes first, then the parts.
  std::optional<Arrangement> put_together(const ColouredGraph& graph,
                                          const std::vector<ColouredGraph>& parts, Effort effort) {
    std::vector<Arrangement> arranged;
    for (const ColouredGraph& part : parts) {
      std::optional<Arrangement> arrangement = arrange(part, effort);
      if (!arrangement) {
        return std::nullopt;
      }
      arranged.push_back(*std::move(arrangement));
    }
    std::ranges::stable_sort(arranged, {}, &Arrangement::certificate);
    Arrangement whole{.outputs = fixed_outputs(graph),
                      .certificate = combine_unordered(graph.colours)};
    const Arrangement* last = nullptr;
    for (const Arrangement& part : arranged) {
      whole.outputs.insert(whole.outputs.end(), part.outputs.begin(), part.outputs.end());
      whole.certificate = combine(whole.certificate, part.certificate);
      whole.orbits.join(part.orbits);
      if (last != nullptr && last->certificate == part.certificate) {
        whole.orbits.join(last->outputs, part.outputs);
      }
      last = &part;
    }
    return whole;
  }

  // The part with a colour of its own for the value, and what follows from that.
  std::optional<Choice> choose(const ColouredGraph& part, int value) {
    Choice choice{.graph = part};
    Colour& colour = choice.graph.colours[at(value)];
    colour = combine(colour, kChosen);
    if (!refine(choice.graph, budget_)) {
      return std::nullopt;
    }
    choice.colours = combine_unordered(choice.graph.colours);
    return choice;
  }

  // Of a part in which nothing has a colour of its own. That no output is tied then takes two
  // colours that meet by chance.
  std::optional<Arrangement> choose_first(const ColouredGraph& part) {
    const std::vector<int> tied = find_tied(part);
    const std::optional<Choice> choice = tied.empty() ? std::nullopt : choose(part, tied.front());
    return choice ? arrange(choice->graph, Effort::First) : std::nullopt;
  }

  std::optional<Arrangement> choose_least(const ColouredGraph& part) {
    Trials trials;
    for (const int value : find_tied(part)) {
      const int id = part.ids[at(value)];
      if (trials.is_known(id)) {
        continue;
      }
      trials.tried.push_back(id);
      const std::optional<Choice> choice = choose(part, value);
      if (!choice) {
        return std::nullopt;
      }
      if (trials.least && choice->colours > trials.least_colours) {
        continue;
      }
      const std::optional<Arrangement> first = arrange(choice->graph, Effort::First);
      if (!first) {
        return std::nullopt;
      }
      if (trials.join_same(*first)) {
        continue;
      }
      std::optional<Arrangement> found = arrange(choice->graph, Effort::Least);
      if (!found) {
        return std::nullopt;
      }
      trials.offer(*std::move(found), choice->colours);
    }
    if (trials.least) {
      trials.least->orbits = std::move(trials.orbits);
    }
    return std::move(trials.least);
  }

  Budget& budget_;
  int depth_ = 0;
};

// Each value of an output, with what orders it among those of one depth.
std::map<int, Colour> rank_outputs(const Ir& ir) {
  ColouredGraph graph = coloured_graph(ir);
  std::map<int, Colour> ranks;
  const auto rank_by_colour = [&] {
    std::set<Colour> seen;
    for (std::size_t i = 0; i < graph.colours.size(); ++i) {
      if (graph.is_output[i]) {
        ranks[graph.ids[i]] = graph.colours[i];
        seen.insert(graph.colours[i]);
      }
    }
    return seen.size() == ranks.size();
  };
  recolour(graph);
  if (rank_by_colour()) {
    return ranks;
  }
  Budget budget{.steps = kMaxSteps};
  const bool is_refined = refine(graph, budget);
  if (rank_by_colour() || !is_refined) {
    return ranks;
  }
  if (const auto arrangement = Search(budget).arrange(graph, Effort::Least)) {
    for (std::size_t i = 0; i < arrangement->outputs.size(); ++i) {
      ranks[arrangement->outputs[i]] = i;
    }
  }
  return ranks;
}

// The most operators on a path to each value.
std::vector<int> depths(const Ir& ir) {
  std::vector<int> depth(ir.values.size());
  for (const Operator& op : ir.operators) {
    int deepest = 0;
    for (const int id : operand_ids(op)) {
      deepest = std::max(deepest, depth[at(id)]);
    }
    for (const int id : op.outputs) {
      depth[at(id)] = deepest + 1;
    }
  }
  return depth;
}

}  // namespace

std::vector<int> order_outputs(const Ir& ir) {
  std::vector<int> order(ir.outputs.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() < 2) {
    return order;
  }
  const std::vector<int> depth = depths(ir);
  const std::map<int, Colour> ranks = rank_outputs(ir);
  std::ranges::sort(order, {}, [&](int output) {
    const int value = ir.outputs[at(output)].value;
    return std::tuple(depth[at(value)], ranks.at(value), output);
  });
  return order;
}

}  // namespace stof::graph
