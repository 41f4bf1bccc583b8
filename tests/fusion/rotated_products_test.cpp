// Rotary embeddings behind a product instead of behind its heads: which are taken, that they mean
// the same, and where it is faster.
#include "fusion/rotated_products.hpp"

#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "fusion/joined_testing.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/append.hpp"
#include "graph/canonical.hpp"
#include "graph/op_info.hpp"
#include "reference/run.hpp"
#include "reference/testing.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

// Attention with grouped heads, whose Q and K are turned.
struct TurnedLayer {
  Graph graph{"turned"};
  Tensor x = graph.input("x", {2, 24, 96}, DType::Float32);

  Tensor heads(const std::string& name, std::int64_t number, bool has_bias) {
    const Tensor w = graph.weight("w" + name, {number * 16, 96}, DType::Float32);
    const Tensor y =
        has_bias ? graph.linear(x, w, graph.weight("b" + name, {number * 16}, DType::Float32))
                 : graph.linear(x, w);
    return graph.split_heads(y, number);
  }
  void attend(const Tensor& q, const Tensor& k, const Tensor& v) {
    graph.output("y", graph.merge_heads(graph.attention(q, k, v, {.mask = causal()})));
  }
  JoinedProducts joined() const {
    return join_products(graph::normalise_but_attention(graph.ir()));
  }
};

// How many rotaries are left where heads are turned like this, of Q, K and V before.
using Turned = std::function<void(TurnedLayer&, const Tensor& q, const Tensor& k, const Tensor& v)>;

int left_of(const Turned& turn) {
  TurnedLayer layer;
  const Tensor q = layer.heads("q", 4, false);
  const Tensor k = layer.heads("k", 2, false);
  const Tensor v = layer.heads("v", 2, false);
  turn(layer, q, k, v);
  const graph::Ir ir = rotate_products(layer.joined().ir).ir;
  CHECK(count(ir, graph::OpKind::RotaryHeads) == (count(ir, graph::OpKind::Rotary) == 0 ? 1 : 0));
  return count(ir, graph::OpKind::Rotary);
}

void check_equal(const Graph& graph, const JoinedProducts& joined) {
  HostTensors tensors;
  unsigned seed = 1;
  for (const auto& value : graph::normalise_but_attention(graph.ir()).values) {
    if (value->role == graph::ValueRole::Result) {
      continue;
    }
    const Sizes shape = value->shape.sizes();
    if (value->dtype == DType::Int32) {
      Values positions(static_cast<std::size_t>(count_of(shape)));
      for (std::size_t i = 0; i < positions.size(); ++i) {
        positions[i] = static_cast<double>(i * 37 % 101);
      }
      tensors[value->name] = tensor_of(DType::Int32, shape, positions);
    } else {
      tensors[value->name] = random_tensor(shape, ++seed, value->dtype);
    }
  }
  add_joined(tensors, joined.weights);
  const auto run = [&](const graph::Ir& ir) {
    reference::Tensors views;
    for (const auto& value : ir.values) {
      if (value->role != graph::ValueRole::Result) {
        views.emplace(value->name, tensors.at(value->name).view());
      }
    }
    return reference::run(Graph(ir), views, {.precision = Precision::Float64});
  };
  const auto expected = run(joined.ir);
  for (const auto& [name, output] : run(rotate_products(joined.ir).ir)) {
    check_close(output.values, expected.at(name).values);
  }
}

}  // namespace

TEST_CASE("heads of one product are turned as one, and mean the same") {
  for (const RotaryStyle style : {RotaryStyle::Half, RotaryStyle::Interleaved}) {
    for (const int positions : {0, 1, 2}) {  // axes of the tensor
      TurnedLayer layer;
      Graph& graph = layer.graph;
      const RotaryOptions options{.style = style, .rotary_dim = positions == 1 ? 8 : 16};
      const Tensor at = positions == 0   ? Tensor()
                        : positions == 1 ? graph.input("at", {24}, DType::Int32)
                                         : graph.input("at", {2, 24}, DType::Int32);
      const bool has_bias = positions == 2;
      const Tensor q = graph.rotary(layer.heads("q", 4, has_bias), options, at);
      const Tensor k = graph.rotary(layer.heads("k", 2, has_bias), options, at);
      const Tensor v = layer.heads("v", 2, has_bias);
      layer.attend(q, k, v);
      const JoinedProducts joined = layer.joined();
      const graph::Ir ir = rotate_products(joined.ir).ir;
      CHECK(count(joined.ir, graph::OpKind::Rotary) == 2);
      CHECK(count(ir, graph::OpKind::Rotary) == 0);
      REQUIRE(count(ir, graph::OpKind::RotaryHeads) == 1);
      const auto turn =
          std::ranges::find(ir.operators, graph::OpKind::RotaryHeads, &graph::Operator::kind);
      CHECK(graph::attribute<std::int64_t>(*turn, "heads") == 6);
      CHECK(graph::attribute<std::int64_t>(*turn, "head_dim") == 16);
      check_equal(graph, joined);
    }
  }
}

TEST_CASE("what does not pass a check is turned where it was") {
  CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
          layer.attend(layer.graph.rotary(q), layer.graph.rotary(k), v);
        }) == 0);
  SUBCASE("not from the first column on") {
    CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
            layer.attend(q, layer.graph.rotary(k), v);
          }) == 1);
  }
  SUBCASE("other angles") {
    CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
            layer.attend(layer.graph.rotary(q), layer.graph.rotary(k, {.theta = 500}), v);
          }) == 2);
  }
  SUBCASE("somebody else reads the heads") {
    CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
            layer.graph.output("q", layer.graph.relu(q));
            layer.attend(layer.graph.rotary(q), layer.graph.rotary(k), v);
          }) == 2);
  }
  SUBCASE("the heads are an output") {
    CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
            layer.graph.output("q", q);
            layer.attend(layer.graph.rotary(q), layer.graph.rotary(k), v);
          }) == 2);
  }
  SUBCASE("positions that are made") {
    CHECK(left_of([](TurnedLayer& layer, const Tensor& q, const Tensor& k, const Tensor& v) {
            Graph& graph = layer.graph;
            const Tensor at = graph.cast(graph.input("at", {24}, DType::Float32), DType::Int32);
            layer.attend(graph.rotary(q, {}, at), graph.rotary(k, {}, at), v);
          }) == 2);
  }
}

TEST_CASE("LLaMA turns Q and K where it multiplies, on a GPU that has the kernel") {
  for (const auto& [batch, sequence] : {std::pair(1, 128), std::pair(1, 16), std::pair(8, 512)}) {
    const Graph graph =
        models::llama({.num_hidden_layers = 1}, {.batch = batch, .sequence = sequence});
    const auto rotated_on = [&](const char* device) {
      const base::DeviceProfile profile = base::shipped_profile(device);
      const graph::Ir ir = join_products(graph::normalise_but_attention(graph.ir())).ir;
      return rotate_products_if_faster({.ir = ir}, shipped_templates(), profile);
    };
    const RotatedProducts rotated = rotated_on("h200");
    CHECK(count(rotated.ir, graph::OpKind::Rotary) == 0);
    REQUIRE(rotated.scheme);
    CHECK(rotated.kinds.size() == 1);
    const graph::Ir joined = join_products(graph::normalise_but_attention(graph.ir())).ir;
    CHECK(graph::canonicalise(rotate_products(joined, rotated.kinds).ir).digest ==
          graph::canonicalise(rotated.ir).digest);
    CHECK(graph::canonicalise(rotate_products(joined, {}).ir).digest ==
          graph::canonicalise(joined).digest);
    const Lowered lowered =
        lower(rotated.ir, shipped_templates(), base::shipped_profile("h200"), {},
              {.scheme = rotated.scheme, .settings = {}, .lists_all = false});
    CHECK(std::ranges::any_of(lowered.program.kernels, [](const std::string& kernel) {
      return kernel == "gemm_rotary" || kernel == "few_rows_rotary";
    }));
    CHECK(count(rotated_on("a100").ir, graph::OpKind::Rotary) == 2);
  }
}

TEST_CASE("heads that a product does not have") {
  const auto append = [](const Shape& shape, std::int64_t heads, std::int64_t rotary_dim) {
    graph::Ir ir;
    const int x = graph::append_value(
        ir,
        {.name = "x", .shape = shape, .dtype = DType::Float16, .role = graph::ValueRole::Input});
    graph::append_one(ir, {.kind = graph::OpKind::RotaryHeads,
                           .inputs = {x},
                           .outputs = {-1},
                           .attributes = {{"theta", 10000.0},
                                          {"style", std::string("half")},
                                          {"rotary_dim", rotary_dim},
                                          {"position", std::int64_t{0}},
                                          {"head_dim", std::int64_t{16}},
                                          {"heads", heads}}});
  };
  CHECK_NOTHROW(append({5, 64}, 4, 16));
  CHECK_THROWS_AS(append({5, 64}, 5, 16), GraphError);
  CHECK_THROWS_AS(append({5, 64}, 4, 18), GraphError);
  CHECK_THROWS_AS(append({2, 5, 4, 64}, 4, 16), GraphError);
}
