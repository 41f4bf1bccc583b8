// The schemes that should be the best, by the cost model alone.
#include "fusion/propose.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "fusion/greedy_groups.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "fusion/scheme_groups.hpp"
#include "graph/bind_dims.hpp"
#include "graph/random_graph.hpp"
#include "stof/error.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

const base::DeviceProfile& device() {
  return base::shipped_profile("h200");
}

std::vector<Proposal> proposals_of(const graph::Ir& ir, std::size_t count = kProposals) {
  return propose_schemes(ir, shipped_templates(), device(), {}, count);
}

// Without the copies to outputs, which are the same for every scheme.
double segments_us(const Lowered& lowered) {
  double us = 0;
  for (std::size_t i = 0; i < lowered.options.size(); ++i) {
    us += lowered.origins[i].group < 0 ? 0 : lowered.options[i].front().time.total_us();
  }
  return us;
}

double greedy_us(const graph::Ir& ir) {
  const Decisions none;
  const OperatorOrder order = operator_order(ir);
  MaskArraysByMask masks;
  GroupPlanner planner(ir, order, shipped_templates(), device(), masks, none);
  double us = 0;
  for (const Group& group : greedy_groups(ir, shipped_templates())) {
    std::string misfits;
    const auto launches = planner.plan(group, misfits);
    us += launches ? predicted_us(*launches) : std::numeric_limits<double>::infinity();
  }
  return us;
}

// The times of all schemes, the least first.
std::vector<double> all_times(const graph::Ir& ir) {
  const Decisions none;
  const OperatorOrder order = operator_order(ir);
  MaskArraysByMask masks;
  GroupPlanner planner(ir, order, shipped_templates(), device(), masks, none);
  const auto size = static_cast<int>(order.size());
  std::map<std::pair<int, int>, double> known;
  const auto us_of = [&](const Segment& segment) {
    const auto [found, is_new] = known.emplace(std::pair(segment.begin, segment.end),
                                               std::numeric_limits<double>::infinity());
    if (is_new) {
      if (const auto group = planner.best_group(operators_of(order, segment))) {
        found->second = planner.predict(*group).value_or(found->second);
      }
    }
    return found->second;
  };
  std::vector<double> times;
  for (unsigned code = 0; code < 1U << (size - 1); ++code) {
    std::vector<bool> digits;
    for (int place = 0; place < size; ++place) {
      digits.push_back((code >> place & 1U) != 0);
    }
    double us = 0;
    for (const Segment& segment : Scheme(digits).segments()) {
      us += us_of(segment);
    }
    if (us < std::numeric_limits<double>::infinity()) {
      times.push_back(us);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

// A graph of static shapes; symbolic extents take their least value.
graph::Ir random_ir(std::uint64_t seed, int operators) {
  const graph::Ir ir =
      graph::normalise_but_attention(graph::RandomGraph(seed).build(operators).ir());
  DimValues dims;
  for (const auto& [name, dim] : ir.dims) {
    dims.emplace(name, std::min<std::int64_t>(dim.max(), 8));
  }
  return graph::bind_dims(ir, dims);
}

// None where a mask does not fit the extents that were drawn.
std::vector<Proposal> proposals_if_any(const graph::Ir& ir) {
  try {
    return proposals_of(ir, 1);
  } catch (const GraphError&) {
    return {};
  }
}

// x + gelu(x W1 + b) W2, normalised; no two of its segments are equal.
Graph feed_forward() {
  Graph graph("feed_forward");
  const auto x = graph.input("x", {512, 768}, DType::Float16);
  const auto inner = graph.gelu(graph.linear(x, graph.weight("w1", {3072, 768}, DType::Float16),
                                             graph.weight("b1", {3072}, DType::Float16)));
  const auto outer = graph.linear(inner, graph.weight("w2", {768, 3072}, DType::Float16),
                                  graph.weight("b2", {768}, DType::Float16));
  graph.output("y",
               graph.layer_norm(graph.add(outer, x), graph.weight("gamma", {768}, DType::Float16),
                                graph.weight("beta", {768}, DType::Float16)));
  return graph;
}

}  // namespace

TEST_CASE("the best five of all schemes there are") {
  const graph::Ir ir = graph::normalise_but_attention(feed_forward().ir());
  const std::vector<double> times = all_times(ir);
  const std::vector<Proposal> proposals = proposals_of(ir);
  REQUIRE(proposals.size() == kProposals);
  REQUIRE(times.size() > kProposals);
  std::set<Scheme> schemes;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    CHECK(proposals[i].predicted_us == doctest::Approx(times[i]).epsilon(1e-12));
    CHECK(schemes.insert(proposals[i].scheme).second);
    const Lowered lowered = lower(ir, shipped_templates(), device(), {},
                                  {.scheme = proposals[i].scheme, .settings = {}});
    CHECK(segments_us(lowered) == doctest::Approx(proposals[i].predicted_us).epsilon(1e-12));
  }
  CHECK(proposals_of(ir, 1).size() == 1);
  CHECK(proposals_of(ir, 1000).size() == times.size());
}

TEST_CASE("random graphs: nothing is faster than the first") {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const graph::Ir ir = random_ir(seed, 12);
    const std::vector<Proposal> proposals = proposals_if_any(ir);
    const OperatorOrder order = operator_order(ir);
    if (proposals.empty() || order.size() > 12) {
      continue;
    }
    ++tried;
    CHECK(proposals.front().predicted_us == doctest::Approx(all_times(ir).at(0)).epsilon(1e-12));
  }
  CHECK(tried > 10);
}

TEST_CASE("lowering takes the first, which no greedy rule beats") {
  for (const Graph& graph : six_models()) {
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    const std::vector<Proposal> proposals = proposals_of(ir);
    const Lowered lowered = lower(ir, shipped_templates(), device());
    const double greedy = greedy_us(ir);
    INFO(ir.name << ": " << proposals.front().scheme.text());
    CHECK(lowered.scheme == proposals.front().scheme);
    CHECK(segments_us(lowered) <= proposals.front().predicted_us * (1 + 1e-12));
    CHECK(proposals.front().predicted_us <= greedy * (1 + 1e-12));
  }
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const graph::Ir ir = random_ir(seed, 24);
    if (!proposals_if_any(ir).empty()) {
      ++tried;
      INFO("seed " << seed);
      CHECK(segments_us(lower(ir, shipped_templates(), device())) <= greedy_us(ir) * (1 + 1e-12));
    }
  }
  CHECK(tried > 20);
}

TEST_CASE("a chain stands before its reader, whichever operand it is") {
  for (const bool is_first : {false, true}) {
    Graph graph("gate");
    const auto x = graph.input("x", {2, 128, 768}, DType::Float16);
    const auto qkv = graph.linear(x, graph.weight("w", {2304, 768}, DType::Float16));
    const auto heads = graph.split_qkv(qkv, {.heads = 12, .kv_heads = 12});
    const auto context = graph.merge_heads(graph.attention(heads.q, heads.k, heads.v, {}));
    const auto gate = graph.sigmoid(graph.linear(x, graph.weight("g", {768, 768}, DType::Float16)));
    graph.output("y", is_first ? graph.multiply(gate, context) : graph.multiply(context, gate));
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    CHECK(proposals_of(ir, 1).at(0).scheme.text() == "0 1 000");
  }
}

TEST_CASE("what is proposed is legal, and cuts equal layers alike") {
  const auto lets_all = [](const Segment&, int) { return true; };
  for (const Graph& graph : six_models()) {
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    const OperatorOrder order = operator_order(ir);
    const std::vector<Proposal> proposals = proposals_of(ir);
    REQUIRE(proposals.size() == kProposals);
    double least = 0;
    for (const Proposal& proposal : proposals) {
      CHECK(is_legal(order, proposal.scheme, lets_all));
      CHECK(proposal.predicted_us >= least);
      least = proposal.predicted_us;
      for (const Segment& segment : proposal.scheme.segments()) {
        CHECK(
            (segment.size() == 1 || !order[static_cast<std::size_t>(segment.begin)].is_attention));
      }
    }
  }
  // One layer more adds the same segments to each proposal.
  const auto counts = [](int layers) {
    const Graph graph = models::gpt2({.n_layer = layers}, {});
    std::vector<std::size_t> segments;
    for (const Proposal& one : proposals_of(graph::normalise_but_attention(graph.ir()))) {
      segments.push_back(one.scheme.segments().size());
    }
    return segments;
  };
  const auto two = counts(2);
  const auto three = counts(3);
  const auto six = counts(6);
  for (std::size_t i = 0; i < kProposals; ++i) {
    CHECK(six[i] - three[i] == 3 * (three[i] - two[i]));
  }
}

TEST_CASE("equal layers cost one: a thousand operators are no matter") {
  const Graph graph = models::bert({.num_hidden_layers = 56}, {});
  const graph::Ir ir = graph::normalise_but_attention(graph.ir());
  REQUIRE(operator_order(ir).size() >= 1000);
  CHECK(proposals_of(ir).size() == kProposals);
}
