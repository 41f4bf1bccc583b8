// Lowering as it is told to: by a scheme, and by kernels and settings for problems.
#include "fusion/decisions.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "error_of.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "fusion/segment_graph.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;
using stof::test::error_of;

namespace {

// matmul, add (the bias), gelu, matmul, add (what came in), layer_norm
Graph feed_forward() {
  Graph graph("feed_forward");
  const auto x = graph.input("x", {512, 768}, DType::Float16);
  const auto inner = graph.gelu(graph.linear(x, graph.weight("w1", {3072, 768}, DType::Float16),
                                             graph.weight("b1", {3072}, DType::Float16)));
  const auto outer = graph.linear(inner, graph.weight("w2", {768, 3072}, DType::Float16));
  const auto sum = graph.add(outer, x);  // compilers differ in which argument they make first
  const auto gamma = graph.weight("gamma", {768}, DType::Float16);
  const auto beta = graph.weight("beta", {768}, DType::Float16);
  graph.output("y", graph.layer_norm(sum, gamma, beta));
  return graph;
}

std::vector<std::string> kernels_of(const Lowered& lowered) {
  std::vector<std::string> kernels;
  for (const kernel::LaunchRecord& launch : lowered.program.launches) {
    kernels.push_back(lowered.program.kernels[static_cast<std::size_t>(launch.kernel)]);
  }
  return kernels;
}

}  // namespace

TEST_CASE("every scheme that templates can run is lowered segment by segment") {
  for (const char* const text : {"000 11 0", "0 1 0 1 0 1", "00 1 0 11", "0 11 00 1"}) {
    INFO(text);
    const Scheme scheme = Scheme::from_text(text);
    const Lowered lowered = lowered_by(feed_forward(), {.scheme = scheme, .settings = {}});
    CHECK(lowered.scheme == scheme);
    REQUIRE(lowered.groups.size() == scheme.segments().size());
    REQUIRE(lowered.origins.size() == lowered.program.launches.size());
    for (std::size_t i = 0; i < lowered.groups.size(); ++i) {
      CHECK(static_cast<int>(lowered.groups[i].size()) == scheme.segments()[i].size());
      CHECK(lowered.origins[i].group == static_cast<int>(i));
    }
  }
  CHECK(kernels_of(lowered_by(feed_forward(),
                              {.scheme = Scheme::from_text("0 1 0 1 00"), .settings = {}})) ==
        std::vector<std::string>{"gemm_sm90", "elementwise", "elementwise", "gemm_sm90",
                                 "layer_norm"});
}

TEST_CASE("a scheme that no template can run is an error that names the segment") {
  CHECK(error_of<GraphError>([] {
          lowered_by(feed_forward(), {.scheme = Scheme::from_text("00 1111"), .settings = {}});
        }) ==
        "scheme: no template runs segment 1 of 0f, operators 2 to 5: gelu ('gelu_4'), "
        "matmul ('linear_6'), add ('add_7'), layer_norm ('layer_norm_10')");
  CHECK(error_of<GraphError>([] {
          lowered_by(feed_forward(), {.scheme = Scheme::from_text("000 11"), .settings = {}});
        }) == "scheme: 03 has 5 digits, the graph feed_forward has 6 operators");
}

TEST_CASE("a setting that is decided runs") {
  const Lowered plain = lowered_by(feed_forward(), {});
  const LaunchOrigin& first = plain.origins.at(0);
  const Option& chosen = plain.options.at(0).at(0);
  Decisions decisions;
  for (const Option& option : plain.options[0]) {
    decisions.settings = {{problem_key(first.problem), {option.kernel, option.config}}};
    const Lowered lowered = lowered_by(feed_forward(), decisions);
    CHECK(lowered.origins[0].refusal.empty());
    CHECK(lowered.options[0][0].kernel == option.kernel);
    CHECK(lowered.options[0][0].config == option.config);
    CHECK(lowered.options[0].size() == plain.options[0].size());
    CHECK(lowered.options[0][0].time.total_us() == option.time.total_us());
    CHECK(lowered.specs[0].variables.at("param") == nlohmann::json(option.config));
    CHECK(lowered.options[1][0].config == plain.options[1][0].config);
  }

  SUBCASE("with values that the model would not think of") {
    kernel::KernelConfig config = chosen.config;
    config.at("stages") = config.at("stages") == 3 ? 4 : 3;
    decisions.settings = {{problem_key(first.problem), {chosen.kernel, config}}};
    const Lowered lowered = lowered_by(feed_forward(), decisions);
    CHECK(lowered.origins[0].refusal.empty());
    CHECK(lowered.options[0][0].config == config);
  }
  SUBCASE("but for what its kernel does not take: then the model's choice does") {
    const auto refusal = [&](const Setting& setting) {
      decisions.settings = {{problem_key(first.problem), setting}};
      const Lowered lowered = lowered_by(feed_forward(), decisions);
      CHECK(lowered.options[0][0].config == chosen.config);
      return lowered.origins[0].refusal;
    };
    CHECK(refusal({"gemm_sm120", chosen.config}) == "gemm_sm120 does not take the problem");
    CHECK(refusal({"layer_norm", {}}) == "layer_norm does not take the problem");
    CHECK(refusal({chosen.kernel, {{"stages", 4}}}) ==
          chosen.kernel + " does not allow {\"stages\":4}");
    kernel::KernelConfig config = chosen.config;
    config.at("stages") = 1000;
    CHECK(refusal({chosen.kernel, config}).starts_with(chosen.kernel + " does not allow {"));
  }
}

TEST_CASE("equal layers have equal problems, and other ones others") {
  const auto problems = [](const Graph& graph) {
    std::set<std::string> keys;
    const Lowered lowered = lowered_by(graph, {});
    for (const LaunchOrigin& origin : lowered.origins) {
      keys.insert(problem_key(origin.problem));
    }
    return keys;
  };
  const auto two = problems(models::bert({.num_hidden_layers = 2}, {}));
  const auto four = problems(models::bert({.num_hidden_layers = 4}, {}));
  CHECK(two == four);
  const auto wide = problems(models::bert({.num_hidden_layers = 2}, {.sequence = 256}));
  std::vector<std::string> shared;
  std::set_intersection(two.begin(), two.end(), wide.begin(), wide.end(),
                        std::back_inserter(shared));
  CHECK(shared.empty());

  const auto attention = [&](const Mask& mask) {
    Graph graph("attention");
    const auto q = graph.input("q", {1, 12, 512, 64}, DType::Float16);
    graph.output("y", graph.attention(q, q, q, {.mask = mask}));
    return problems(graph);
  };
  CHECK(attention(causal()) == attention(causal()));
  CHECK(attention(causal()) != attention(sliding_window(64, 64)));
  CHECK(attention(causal()) != attention({}));
}

TEST_CASE("what a problem says") {
  const Lowered lowered = lowered_by(feed_forward(), {});
  const nlohmann::json& problem = lowered.origins.at(0).problem;
  CHECK(problem.at("device") == base::shipped_profile("h200").name);
  CHECK(problem.at("operators").size() == 3);
  CHECK(problem["operators"][0].at("op") == "matmul");
  CHECK(problem["operators"][0].at("attributes").at("transpose_b") == true);
  CHECK(
      problem.at("values")[0] ==
      nlohmann::json(
          {{"dtype", "float16"}, {"shape", {512, 768}}, {"strides", {768, 1}}, {"alignment", 16}}));
  CHECK(problem.at("results").size() == 1);
  CHECK_FALSE(problem.contains("mask"));
  CHECK(problem.dump().find("linear") == std::string::npos);
}

TEST_CASE("a kernel does not read what it writes") {
  // The sum may leave layer_norm, but not to an operator that the same kernel runs.
  Graph graph("own");
  const auto x = graph.input("x", {512, 768}, DType::Float16);
  const auto r = graph.input("r", {512, 768}, DType::Float16);
  const auto sum = graph.add(x, r);
  const auto y = graph.layer_norm(sum, graph.weight("gamma", {768}, DType::Float16),
                                  graph.weight("beta", {768}, DType::Float16));
  graph.output("y", graph.multiply(y, sum));
  CHECK(kernels_of(lowered_by(graph, {})) == std::vector<std::string>{"layer_norm", "elementwise"});
  CHECK(error_of<GraphError>([&] {
          lowered_by(graph, {.scheme = Scheme::from_text("000"), .settings = {}});
        }).starts_with("scheme: no template runs segment 0 of 0, operators 0 to 2"));
}
