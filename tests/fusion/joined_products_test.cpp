// Products of one x as one: what is joined, that it means the same, and where it is faster.
#include "fusion/joined_products.hpp"

#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "fusion/joined_testing.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/canonical.hpp"
#include "reference/run.hpp"
#include "reference/testing.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

struct Layer {
  Graph graph{"layer"};
  Tensor x = graph.input("x", {2, 64, 96}, DType::Float32);

  Tensor weight(const std::string& name, const Shape& shape, DType dtype = DType::Float32,
                WeightLayout layout = WeightLayout::OutIn) {
    return graph.weight(name, shape, dtype, {.layout = layout});
  }
  Tensor linear(const std::string& name, std::int64_t out, bool has_bias) {
    return has_bias ? graph.linear(x, weight("w" + name, {out, 96}), weight("b" + name, {out}))
                    : graph.linear(x, weight("w" + name, {out, 96}));
  }
  graph::Ir ir() const { return graph::normalise_but_attention(graph.ir()); }
};

// Attention with Q, K and V apart, grouped heads, and a gated product behind.
Layer attention_and_gate(bool has_bias) {
  Layer layer;
  Graph& graph = layer.graph;
  const auto q = graph.split_heads(layer.linear("q", 96, has_bias), 4);
  const auto k = graph.split_heads(layer.linear("k", 48, has_bias), 2);
  const auto v = graph.split_heads(layer.linear("v", 48, has_bias), 2);
  const auto context = graph.merge_heads(graph.attention(q, k, v, {.mask = causal()}));
  const auto middle = graph.add(layer.x, context);
  const auto gate = graph.linear(middle, layer.weight("w_gate", {160, 96}));
  const auto up = graph.linear(middle, layer.weight("w_up", {160, 96}));
  graph.output("y", graph.multiply(graph.silu(gate), up));
  return layer;
}

// Random weights and inputs of the first graph; those of the second are made of them.
HostTensors tensors_of(const graph::Ir& ir, const std::vector<JoinedWeight>& joined) {
  HostTensors tensors;
  unsigned seed = 1;
  for (const auto& value : ir.values) {
    if (value->role != graph::ValueRole::Result) {
      tensors[value->name] = random_tensor(value->shape.sizes(), ++seed, value->dtype);
    }
  }
  add_joined(tensors, joined);
  return tensors;
}

void check_equal(const graph::Ir& ir) {
  const JoinedProducts joined = join_products(ir);
  HostTensors all = tensors_of(ir, joined.weights);
  const auto run = [&](const graph::Ir& of) {
    reference::Tensors views;
    for (const auto& value : of.values) {
      if (value->role != graph::ValueRole::Result) {
        views.emplace(value->name, all.at(value->name).view());
      }
    }
    return reference::run(Graph(of), views, {.precision = Precision::Float64});
  };
  const auto expected = run(ir);
  const auto found = run(joined.ir);
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, output] : expected) {
    check_close(found.at(name).values, output.values);
  }
}

int products(const graph::Ir& ir) {
  return static_cast<int>(
      std::ranges::count(ir.operators, graph::OpKind::MatMul, &graph::Operator::kind));
}

// How many products are left of two that read x, when one of them is changed.
int left_of_two(const std::function<void(Layer&)>& add_second) {
  Layer layer;
  layer.graph.output("first", layer.linear("1", 64, true));
  add_second(layer);
  const graph::Ir ir = layer.ir();
  const JoinedProducts joined = join_products(ir);
  CHECK(joined.weights == joinable_weights(ir));
  return products(joined.ir);
}

}  // namespace

TEST_CASE("Q, K and V, gate and up: joined, they mean the same") {
  for (const bool has_bias : {false, true}) {
    const graph::Ir ir = attention_and_gate(has_bias).ir();
    const JoinedProducts joined = join_products(ir);
    CHECK(products(ir) == 5);
    CHECK(products(joined.ir) == 2);
    REQUIRE(joined.weights.size() == (has_bias ? 3 : 2));
    CHECK(joined.weights[0] == JoinedWeight{"wq+wk+wv", {"wq", "wk", "wv"}});
    CHECK(joined.weights.back() == JoinedWeight{"w_gate+w_up", {"w_gate", "w_up"}});
    CHECK(joined.weights == joinable_weights(ir));
    check_equal(ir);
  }
}

TEST_CASE("joined weights stand behind those of the graph, in their order") {
  const graph::Ir ir = attention_and_gate(true).ir();
  const JoinedProducts joined = join_products(ir);
  std::vector<std::string> names;
  for (const auto& value : joined.ir.values) {
    if (value->role == graph::ValueRole::Weight) {
      names.push_back(value->name);
    }
  }
  const auto own = static_cast<std::size_t>(std::ranges::count_if(
      ir.values, [](const auto& value) { return value->role == graph::ValueRole::Weight; }));
  REQUIRE(names.size() == own + joined.weights.size());
  for (std::size_t i = 0; i < joined.weights.size(); ++i) {
    CHECK(names[own + i] == joined.weights[i].name);
  }
}

TEST_CASE("what does not pass a check stays as it is") {
  const auto plain = [](Layer& layer) { layer.graph.output("y", layer.linear("2", 32, true)); };
  CHECK(left_of_two(plain) == 1);

  SUBCASE("another x, here of another k") {
    CHECK(left_of_two([](Layer& layer) {
            const auto x = layer.graph.input("x2", {2, 64, 32}, DType::Float32);
            layer.graph.output(
                "y", layer.graph.linear(x, layer.weight("w2", {64, 32}), layer.weight("b2", {64})));
          }) == 2);
  }
  SUBCASE("another dtype") {
    CHECK(left_of_two([](Layer& layer) {
            const auto x = layer.graph.cast(layer.x, DType::Float16);
            layer.graph.output("y",
                               layer.graph.linear(x, layer.weight("w2", {64, 96}, DType::Float16),
                                                  layer.weight("b2", {64}, DType::Float16)));
          }) == 2);
  }
  SUBCASE("a weight that lies (in, out)") {
    CHECK(left_of_two([](Layer& layer) {
            const auto w = layer.weight("w2", {96, 64}, DType::Float32, WeightLayout::InOut);
            layer.graph.output("y", layer.graph.linear(layer.x, w, layer.weight("b2", {64})));
          }) == 2);
  }
  SUBCASE("a weight that is read elsewhere") {
    CHECK(left_of_two([](Layer& layer) {
            const auto w = layer.weight("w2", {64, 96});
            layer.graph.output("y", layer.graph.linear(layer.x, w, layer.weight("b2", {64})));
            layer.graph.output("z", layer.graph.relu(w));
          }) == 2);
  }
  SUBCASE("an input for a weight") {
    CHECK(left_of_two([](Layer& layer) {
            const auto w = layer.graph.input("w2", {64, 96}, DType::Float32);
            layer.graph.output("y", layer.graph.matmul(layer.x, w, false, true));
          }) == 2);
  }
  SUBCASE("no bias beside one with") {
    CHECK(left_of_two(
              [](Layer& layer) { layer.graph.output("y", layer.linear("2", 64, false)); }) == 2);
  }
  SUBCASE("a product that is read without its bias too") {
    CHECK(left_of_two([](Layer& layer) {
            const auto product = layer.linear("2", 64, false);
            layer.graph.output("y", layer.graph.add(product, layer.weight("b2", {64})));
            layer.graph.output("z", product);
          }) == 2);
  }
  SUBCASE("parts that would not be aligned") {
    CHECK(left_of_two([](Layer& layer) { layer.graph.output("y", layer.linear("2", 30, true)); }) ==
          2);
  }
}

TEST_CASE("only where it should be faster") {
  const auto joined = [](const graph::Ir& ir) {
    return join_products_if_faster(ir, shipped_templates(), base::shipped_profile("h200"));
  };
  for (const Graph& graph : six_models()) {
    INFO(graph.ir().name);
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    const JoinedProducts result = joined(ir);
    CHECK(total_us(result.ir) <= total_us(ir) * (1 + 1e-12));
    const JoinedProducts same = join_products(ir, result.kinds);
    CHECK(same.weights == result.weights);
    CHECK(graph::canonicalise(same.ir).digest == graph::canonicalise(result.ir).digest);
    if (result.scheme) {  // lowering finds the same one
      CHECK(lower(result.ir, shipped_templates(), base::shipped_profile("h200")).scheme ==
            *result.scheme);
    }
  }
  const graph::Ir small =
      graph::normalise_but_attention(models::bert({.num_hidden_layers = 2}, {}).ir());
  CHECK(products(joined(small).ir) == products(small) - 2 * 2);
  // What goes out as it is would have to be copied.
  Graph two("two");
  const auto input = two.input("x", {16384, 4096}, DType::Float16);
  for (const char* const name : {"1", "2"}) {
    const auto w = two.weight(std::string("w") + name, {4096, 4096}, DType::Float16);
    two.output(std::string("y") + name, two.linear(input, w));
  }
  CHECK(joined(graph::normalise_but_attention(two.ir())).weights.empty());
  // Products with a residual each lose more in the sums behind than one product gains.
  Graph large("large");
  const auto x = large.input("x", {16384, 4096}, DType::Float16);
  for (const char* const name : {"1", "2"}) {
    const auto r = large.input(std::string("r") + name, {16384, 4096}, DType::Float16);
    const auto w = large.weight(std::string("w") + name, {4096, 4096}, DType::Float16);
    large.output(std::string("y") + name, large.add(large.linear(x, w), r));
  }
  CHECK(joined(graph::normalise_but_attention(large.ir())).weights.empty());
}

TEST_CASE("what is joined is planned as it is lowered, over residue classes too") {
  const graph::Ir ir = graph::normalise_but_attention(
      models::bert({.num_hidden_layers = 1, .max_position_embeddings = 4096},
                   {.sequence = 4096, .mask = dilated(128, 128, 2)})
          .ir());
  const base::DeviceProfile& h200 = base::shipped_profile("h200");
  const JoinedProducts joined = join_products_if_faster(ir, shipped_templates(), h200);
  REQUIRE(joined.scheme.has_value());
  CHECK(lower(joined.ir, shipped_templates(), h200).scheme == *joined.scheme);
}
