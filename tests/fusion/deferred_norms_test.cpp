// Norms behind products instead of ahead of them: what is put off, that it means the same, and what
// weights are made of.
#include "fusion/deferred_norms.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "fusion/fold_product.hpp"
#include "fusion/joined_testing.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/bind_dims.hpp"
#include "graph/canonical.hpp"
#include "reference/model_cases.hpp"
#include "reference/run.hpp"
#include "reference/testing.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using namespace stof::fusion;
using namespace stof::testing;

namespace {

int norms(const graph::Ir& ir) {
  return count(ir, graph::OpKind::LayerNorm) + count(ir, graph::OpKind::RmsNorm);
}

struct NormedLayer {
  Graph graph{"normed"};
  Tensor x = graph.input("x", {2, 24, 64}, DType::Float16);
  Tensor gain = graph.weight("gain", {64}, DType::Float16);
  Tensor shift = graph.weight("shift", {64}, DType::Float16);
  Tensor normed = graph.layer_norm(x, gain, shift);

  Tensor weight(const std::string& name, const Shape& shape) {
    return graph.weight(name, shape, DType::Float16);
  }
  graph::Ir ir() const { return graph::normalise_but_attention(graph.ir()); }
};

HostTensors random_tensors(const graph::Ir& ir) {
  HostTensors tensors;
  unsigned seed = 1;
  for (const auto& value : ir.values) {
    if (value->role == graph::ValueRole::Result) {
      continue;
    }
    const Sizes shape = value->shape.sizes();
    if (value->role == graph::ValueRole::Weight && shape.size() > 1) {
      const double scale = 1.7 / std::sqrt(static_cast<double>(shape[1]));
      tensors[value->name] = random_tensor(shape, ++seed, value->dtype, -scale, scale);
    } else {
      tensors[value->name] = random_tensor(shape, ++seed, value->dtype);
    }
  }
  return tensors;
}

void add_folded(HostTensors& tensors, const std::vector<FoldedProduct>& products) {
  for (const FoldedProduct& folded : products) {
    FoldedTensors made =
        fold_product(folded, [&](const std::string& name) { return tensors.at(name); });
    CHECK(made.fault.empty());
    tensors[folded.weight] = std::move(made.weight);
    if (made.offset) {
      tensors[folded.offset] = std::move(*made.offset);
    }
  }
}

std::map<std::string, Values> run_all(const graph::Ir& ir, HostTensors& tensors) {
  reference::Tensors views;
  for (const auto& value : ir.values) {
    if (value->role != graph::ValueRole::Result) {
      views.emplace(value->name, tensors.at(value->name).view());
    }
  }
  std::map<std::string, Values> results;
  for (auto& [name, output] : reference::run(Graph(ir), views, {.precision = Precision::Float32})) {
    results[name] = std::move(output.values);
  }
  return results;
}

double relative_error(const Values& found, const Values& expected) {
  double squares = 0;
  double off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    squares += expected[i] * expected[i];
    off += (found[i] - expected[i]) * (found[i] - expected[i]);
  }
  return std::sqrt(off / squares);
}

// The graph with its norms put off, which is checked to mean the same but for one more rounding of
// the weights.
DeferredNorms checked(const graph::Ir& ir) {
  DeferredNorms deferred = defer_norms(ir);
  HostTensors tensors = random_tensors(ir);
  add_folded(tensors, deferred.products);
  const auto expected = run_all(ir, tensors);
  const auto found = run_all(deferred.ir, tensors);
  REQUIRE(found.size() == expected.size());
  for (const auto& output : expected) {
    INFO(output.first);
    CHECK(relative_error(found.at(output.first), output.second) < 1e-3);
  }
  return deferred;
}

}  // namespace

TEST_CASE("a norm that one product reads") {
  NormedLayer layer;
  const Tensor w = layer.weight("w", {96, 64});
  SUBCASE("with a bias") {
    layer.graph.output("y", layer.graph.linear(layer.normed, w, layer.weight("b", {96})));
    const DeferredNorms deferred = checked(layer.ir());
    CHECK(norms(deferred.ir) == 0);
    REQUIRE(deferred.products.size() == 1);
    CHECK(deferred.products[0] == FoldedProduct{.weight = "gain*w",
                                                .offset = "gain*w.offset",
                                                .parts = {"w"},
                                                .is_turned = true,
                                                .gain = "gain",
                                                .shift = "shift",
                                                .biases = {"b"},
                                                .is_centred = true});
    CHECK(count(deferred.ir, graph::OpKind::Add) == 1);
  }
  SUBCASE("without one") {
    layer.graph.output("y", layer.graph.linear(layer.normed, w));
    CHECK(checked(layer.ir()).products[0].biases.empty());
  }
  SUBCASE("of the root mean square, without any offset") {
    const Tensor normed = layer.graph.rms_norm(layer.x, layer.gain);
    layer.graph.output("y", layer.graph.linear(normed, w));
    const DeferredNorms deferred = checked(layer.ir());
    CHECK(deferred.products[0].offset.empty());
    CHECK(count(deferred.ir, graph::OpKind::Add) == 0);
  }
  SUBCASE("with a weight that lies (in, out)") {
    const Tensor turned =
        layer.graph.weight("v", {64, 40}, DType::Float16, {.layout = WeightLayout::InOut});
    layer.graph.output("y", layer.graph.linear(layer.normed, turned));
    CHECK_FALSE(checked(layer.ir()).products[0].is_turned);
  }
  SUBCASE("for any number of rows") {
    Graph graph("rows");
    const Tensor x = graph.input("x", {Dim::symbol("rows", 1, 512), 64}, DType::Float16);
    const Tensor normed = graph.rms_norm(x, graph.weight("g", {64}, DType::Float16));
    graph.output("y", graph.linear(normed, graph.weight("w", {32, 64}, DType::Float16)));
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    CHECK(norms(defer_norms(ir).ir) == 0);
    CHECK(norms(checked(graph::bind_dims(ir, {{"rows", 77}})).ir) == 0);
  }
}

TEST_CASE("others who read the norm make it where they read it") {
  NormedLayer layer;
  Graph& graph = layer.graph;
  const Tensor first = graph.linear(layer.normed, layer.weight("w", {64, 64}));
  const Tensor sum = graph.add(layer.normed, graph.relu(first));
  SUBCASE("a residual and another product") {
    graph.output("y", graph.add(sum, graph.linear(layer.normed, layer.weight("v", {64, 64}))));
    const DeferredNorms deferred = checked(layer.ir());
    CHECK(deferred.products.size() == 2);
    CHECK(count(deferred.ir, graph::OpKind::RowMoments) == 1);
    CHECK(count(deferred.ir, graph::OpKind::ApplyMoments) == 1);
  }
  SUBCASE("an output and a concat share one") {
    graph.output("normed", layer.normed);
    graph.output("two", graph.concat({layer.normed, sum}, 1));
    CHECK(count(checked(layer.ir()).ir, graph::OpKind::ApplyMoments) == 2);
  }
}

TEST_CASE("what cannot be put off stays as it is") {
  NormedLayer layer;
  Graph& graph = layer.graph;
  SUBCASE("a weight that two products read") {
    const Tensor w = layer.weight("w", {64, 64});
    graph.output("y", graph.linear(layer.normed, w));
    graph.output("z", graph.linear(layer.x, w));
  }
  SUBCASE("a gain that is no weight") {
    const Tensor gain = graph.input("given", {64}, DType::Float16);
    graph.output("y", graph.linear(graph.rms_norm(layer.x, gain), layer.weight("w", {64, 64})));
  }
  SUBCASE("a norm that is the weight's side of a product") {
    graph.output(
        "y", graph.matmul(graph.input("a", {2, 8, 64}, DType::Float16), layer.normed, false, true));
  }
  SUBCASE("no product") {
    graph.output("y", graph.relu(layer.normed));
  }
  const graph::Ir ir = layer.ir();
  const DeferredNorms deferred = defer_norms(ir);
  CHECK(deferred.products.empty());
  CHECK(deferred.norms.empty());
  CHECK(norms(deferred.ir) == norms(ir));
}

TEST_CASE("weights are folded with sums of columns that cancel") {
  const std::int64_t k = 768;
  const std::int64_t n = 20;
  HostTensors tensors;
  tensors["w"] = random_tensor({n, k}, 1, DType::Float16, -0.1, 0.1);
  tensors["g"] = random_tensor({k}, 2, DType::Float16, 0.5, 1.5);
  tensors["s"] = random_tensor({k}, 3, DType::Float16);
  tensors["b"] = random_tensor({n}, 4, DType::Float16);
  const auto fold = [&](const FoldedProduct& folded) {
    return fold_product(folded, [&](const std::string& name) { return tensors.at(name); });
  };
  const FoldedProduct folded{.weight = "gw",
                             .offset = "c",
                             .parts = {"w"},
                             .is_turned = true,
                             .gain = "g",
                             .shift = "s",
                             .biases = {"b"},
                             .is_centred = true};
  const FoldedTensors made = fold(folded);
  REQUIRE(made.fault.empty());
  for (std::int64_t row = 0; row < n; ++row) {
    double sum = 0;
    double offset = tensors["b"].at(row);
    for (std::int64_t i = 0; i < k; ++i) {
      sum += made.weight.at(row * k + i);
      offset += tensors["w"].at(row * k + i) * tensors["s"].at(i);
    }
    CHECK(std::abs(sum) < 0.15 * 0x1p-11);  // one rounding of the largest element
    CHECK(made.offset->at(row) == doctest::Approx(offset));
  }
  SUBCASE("parts lie one behind the other, turned or not") {
    FoldedProduct two = folded;
    two.parts = {"w", "w"};
    two.biases = {"b", "b"};
    const FoldedTensors both = fold(two);
    CHECK(both.weight.shape() == std::vector<std::int64_t>{2 * n, k});
    tensors["v"] = HostTensor(DType::Float16, {k, n});
    for (std::int64_t i = 0; i < n * k; ++i) {
      tensors["v"].set(i % k * n + i / k, tensors["w"].at(i));
    }
    FoldedProduct turned = two;
    turned.is_turned = false;
    turned.parts = {"v", "v"};
    const FoldedTensors other = fold(turned);
    CHECK(other.weight.shape() == std::vector<std::int64_t>{k, 2 * n});
    for (std::int64_t i = 0; i < 2 * n * k; ++i) {
      CHECK(both.weight.at(i) == other.weight.at(i % k * 2 * n + i / k));
    }
  }
  SUBCASE("what 16 bits cannot hold is a fault") {
    tensors["g"].set(7, 6e4);
    tensors["w"].set(7, 30);
    CHECK(fold(folded).fault.find("'g' times 'w' is ") != std::string::npos);
  }
  SUBCASE("nor what they lose") {
    tensors["g"] = random_tensor({k}, 2, DType::Float16, 0.5e-4, 1.5e-4);
    CHECK(fold(folded).fault.find("of the size") != std::string::npos);
  }
  SUBCASE("nor what is no number") {
    tensors["s"].set(3, std::numeric_limits<double>::infinity());
    CHECK(fold(folded).fault.find("offset") != std::string::npos);
  }
}

TEST_CASE("models of Hugging Face mean the same with all norms put off, and are planned") {
  const base::DeviceProfile& h200 = base::shipped_profile("h200");
  for (const ModelCase& of : model_cases()) {
    INFO(of.file << " " << of.name);
    const Graph graph = of.build(DType::Float16);
    const graph::Ir ir = graph::normalise_but_attention(graph.ir());
    const JoinedProducts joined = join_products(ir);
    const DeferredNorms deferred = defer_norms(joined.ir, joined.weights);
    CHECK(norms(deferred.ir) == 1);  // which gives the output
    const Graph::Saved saved = Graph(deferred.ir).to_json();
    CHECK(graph::canonicalise(Graph::from_json(saved.json, saved.data).ir()).digest ==
          graph::canonicalise(deferred.ir).digest);
    HostTensors tensors = tensors_for(graph, open(of.file), of.name);
    add_joined(tensors, joined.weights);
    add_folded(tensors, deferred.products);
    const Comparison result = compare(of, run_all(deferred.ir, tensors).at("last_hidden_state"));
    CHECK(result.relative_norm() < 2.5e-3);  // weights of float16 are rounded once more
    CHECK_NOTHROW(lower(deferred.ir, shipped_templates(), h200));
  }
}

TEST_CASE("of a layer of BERT or GPT-2 no kernel of a norm is left") {
  const auto launches = [](const Graph& graph) {
    const JoinedProducts joined = join_products(graph::normalise_but_attention(graph.ir()));
    const DeferredNorms deferred =
        defer_norms_if_faster(joined, shipped_templates(), base::shipped_profile("h200"));
    return lower(deferred.ir, shipped_templates(), base::shipped_profile("h200"))
        .program.launches.size();
  };
  const auto added_by_a_layer = [&](const auto& build) {
    return launches(build(3)) - launches(build(2));
  };
  for (const std::int64_t batch : {1, 8}) {
    CHECK(added_by_a_layer([&](std::int64_t layers) {
            return models::bert({.num_hidden_layers = layers}, {.batch = batch, .sequence = 512});
          }) == 5);
    CHECK(added_by_a_layer([&](std::int64_t layers) {
            return models::gpt2({.n_layer = layers}, {.batch = batch, .sequence = 512});
          }) == 5);
  }
}

TEST_CASE("norms are put off only where that should be faster") {
  const base::DeviceProfile& h200 = base::shipped_profile("h200");
  for (const Graph& graph : six_models()) {
    INFO(graph.ir().name);
    JoinedProducts joined;
    joined.ir = graph::normalise_but_attention(graph.ir());
    const DeferredNorms deferred = defer_norms_if_faster(joined, shipped_templates(), h200);
    CHECK(total_us(deferred.ir) <= total_us(joined.ir) * (1 + 1e-12));
    const DeferredNorms same = defer_norms(joined, deferred.kinds);
    CHECK(same.products == deferred.products);
    CHECK(graph::canonicalise(same.ir).digest == graph::canonicalise(deferred.ir).digest);
    if (deferred.scheme) {  // lowering finds the same one
      CHECK(lower(deferred.ir, shipped_templates(), h200).scheme == *deferred.scheme);
    }
  }
}
