#include "fusion/segment_graph.hpp"

#include <doctest/doctest.h>

#include "fusion/decisions.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/op_info.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

Lowered lowered(const graph::Ir& ir, const Decisions& decisions = {}) {
  return lower(ir, shipped_templates(), base::shipped_profile("h200"), {}, decisions);
}

struct Launch {
  std::string problem;
  kernel::KernelSpec spec;
};

// Those of one group, in order.
std::vector<Launch> launches_of(const Lowered& lowered, int group) {
  std::vector<Launch> launches;
  for (std::size_t i = 0; i < lowered.origins.size(); ++i) {
    if (lowered.origins[i].group == group) {
      const auto kernel = static_cast<std::size_t>(lowered.program.launches[i].kernel);
      launches.push_back({problem_key(lowered.origins[i].problem), lowered.specs[kernel]});
    }
  }
  return launches;
}

// Each group of the graph, alone, has the launches that it has in the whole.
void check_segments(const graph::Ir& ir) {
  const Lowered whole = lowered(ir);
  for (std::size_t i = 0; i < whole.groups.size(); ++i) {
    const graph::Ir part = segment_graph(ir, whole.groups[i]);
    const std::size_t count = whole.groups[i].size();
    const Decisions one{.scheme = Scheme(std::vector<bool>(count, false)), .settings = {}};
    const Lowered alone = lowered(part, one);
    const std::vector<Launch> expected = launches_of(whole, static_cast<int>(i));
    const std::vector<Launch> found = launches_of(alone, 0);
    INFO(ir.name << ": " << whole.program.launches[i].label);
    REQUIRE(found.size() == expected.size());
    for (std::size_t launch = 0; launch < found.size(); ++launch) {
      CHECK(found[launch].problem == expected[launch].problem);
      CHECK(found[launch].spec == expected[launch].spec);
    }
    CHECK(alone.program.launches.size() == found.size());  // no copies to outputs
  }
}

}  // namespace

TEST_CASE("segments of the six models alone: the problems and kernels of the whole graph") {
  for (const Graph& graph : six_models()) {
    check_segments(graph::normalise_but_attention(graph.ir()));
  }
}

TEST_CASE("views stay where strides matter, and go where they do not") {
  Graph graph("attention");
  const auto x = graph.input("x", {2, 128, 768}, DType::Float16);
  const auto qkv = graph.linear(x, graph.weight("w", {2304, 768}, DType::Float16));
  const auto heads = graph.split_qkv(qkv, {.heads = 12, .kv_heads = 12});
  const auto context = graph.merge_heads(graph.attention(heads.q, heads.k, heads.v, {}));
  graph.output("y", graph.linear(context, graph.weight("w_o", {768, 768}, DType::Float16)));
  const graph::Ir ir = graph::normalise_but_attention(graph.ir());
  check_segments(ir);

  const Lowered whole = lowered(ir);
  REQUIRE(whole.groups.size() == 3);
  const graph::Ir attention = segment_graph(ir, whole.groups[1]);
  CHECK(attention.operators.size() > 4);
  CHECK(attention.operators.back().kind != graph::OpKind::Attention);  // the heads are merged
  int inputs = 0;
  for (const auto& value : attention.values) {
    inputs += value->role == graph::ValueRole::Input ? 1 : 0;
    if (value->role == graph::ValueRole::Input) {
      CHECK(value->shape == Shape({2, 128, 2304}));
    }
  }
  CHECK(inputs == 1);
  const graph::Ir last = segment_graph(ir, whole.groups[2]);
  CHECK(last.operators.size() == 1);
  CHECK(last.outputs.size() == 1);
}

TEST_CASE("what is read outside is an output, besides the last result") {
  Graph graph("sum");
  const auto x = graph.input("x", {512, 768}, DType::Float16);
  const auto r = graph.input("r", {512, 768}, DType::Float16);
  const auto sum = graph.add(x, r);
  const auto normed = graph.layer_norm(sum, graph.weight("gamma", {768}, DType::Float16),
                                       graph.weight("beta", {768}, DType::Float16));
  const auto product = graph.linear(normed, graph.weight("w", {768, 768}, DType::Float16));
  graph.output("y", graph.add(product, sum));
  const graph::Ir ir = graph::normalise_but_attention(graph.ir());
  check_segments(ir);
  const graph::Ir part = segment_graph(ir, lowered(ir).groups.at(0));
  CHECK(part.operators.size() == 2);
  CHECK(part.outputs.size() == 2);
}
