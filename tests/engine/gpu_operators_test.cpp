// Each operator, and what is fused with it, on a GPU against the reference in float64.
#include "gpu_testing.hpp"
#include "operator_cases.hpp"

using namespace stof;           // NOLINT(google-build-using-namespace)
using namespace stof::testing;  // NOLINT(google-build-using-namespace)

namespace {

HostTensors random_tensors(const Graph& graph) {
  HostTensors tensors;
  unsigned seed = 1;
  for (const auto& value : graph.ir().values) {
    if (value->role == graph::ValueRole::Result) {
      continue;
    }
    const Sizes shape = value->shape.sizes();
    const std::int64_t count = value->dtype == DType::Bool ? 2 : 5;
    tensors.emplace(value->name, is_floating(value->dtype)
                                     ? random_tensor(shape, seed++, value->dtype)
                                     : random_integers(value->dtype, shape, count));
  }
  return tensors;
}

void check(const std::vector<OperatorCase>& cases,
           NormDeferral norm_deferral = NormDeferral::Never) {
  const Engine engine({.backend = Backend::Gpu, .cache_dir = "", .norm_deferral = norm_deferral});
  for (const OperatorCase& of : cases) {
    for (const DType dtype : {DType::Float16, DType::BFloat16}) {
      const double tolerance = dtype == DType::Float16 ? 3e-3 : 2e-2;
      INFO(of.name << " " << name(dtype));
      try {
        const Graph graph = of.build(dtype);
        HostTensors tensors = random_tensors(graph);
        const auto actual = run_plan(engine, engine.build(graph), tensors);
        for (const auto& expected : run_graph(graph, tensors, {.precision = Precision::Float64})) {
          const double error = relative_norm(actual.at(expected.first), expected.second.values);
          INFO(expected.first);
          CHECK(error < tolerance);
        }
      } catch (const Error& error) {
        FAIL_CHECK(std::string(error.what()));
      }
    }
  }
}

}  // namespace

TEST_CASE("matrix products") {
  check(matmul_cases());
}

TEST_CASE("gated products") {
  check(gated_cases());
}

TEST_CASE("products with a norm ahead") {
  check(normed_input_cases(), NormDeferral::Always);
  check(normed_input_cases(), NormDeferral::Never);
}

TEST_CASE("products whose heads are turned") {
  check(rotated_product_cases());
}

TEST_CASE("products of products of few rows") {
  check(chained_product_cases());
}

TEST_CASE("products with a norm behind") {
  check(normed_product_cases());
}

TEST_CASE("norms, softmax and reductions") {
  check(row_cases());
}

TEST_CASE("elementwise operators, views and gathers") {
  check(other_cases());
}

TEST_CASE("attention with scores and masks that arrive at run time") {
  check(attention_cases());
  check(attention_cases(34));
}

TEST_CASE("float32 products and norms") {
  const Engine engine({.backend = Backend::Gpu, .cache_dir = ""});
  Graph graph("float32");
  const auto x = graph.input("x", {65, 96}, DType::Float32);
  const auto w = graph.weight("w", {40, 96}, DType::Float32);
  const auto g = graph.weight("g", {40}, DType::Float32);
  graph.output("y", graph.layer_norm(graph.linear(x, w), g, {}));
  HostTensors tensors = random_tensors(graph);
  const auto actual = run_plan(engine, engine.build(graph), tensors);
  const auto expected = run_graph(graph, tensors, {.precision = Precision::Float64});
  CHECK(relative_norm(actual.at("y"), expected.at("y").values) < 1e-5);
}

TEST_CASE("symbolic dims: one plan, many lengths, no other kernels") {
  int compiled = 0;
  const Engine engine(
      {.backend = Backend::Gpu, .cache_dir = "", .on_event = [&](const Event& event) {
         compiled += event.stage == "compiled";
       }});
  Graph graph("symbolic");
  const Dim seq = graph.dim("seq", 1, 300);
  const auto x = graph.input("x", {2, seq, 64}, DType::Float16);
  const auto w = graph.weight("w", {192, 64}, DType::Float16);
  const auto heads =
      graph.split_qkv(graph.linear(graph.scale(x, 0.2), w), {.heads = 4, .kv_heads = 4});
  graph.output("y",
               graph.merge_heads(graph.attention(heads.q, heads.k, heads.v, {.mask = causal()})));
  const Plan plan = engine.build(graph);
  HostTensors tensors;
  tensors.emplace("w", random_tensor({192, 64}, 3, DType::Float16));
  for (const std::int64_t length : {300, 1, 64, 65, 177}) {
    tensors.insert_or_assign("x", random_tensor({2, length, 64}, 4, DType::Float16));
    const DimValues dims = {{"seq", length}};
    const auto actual = run_plan(engine, plan, tensors, dims);
    const auto expected =
        run_graph(graph, tensors, {.precision = Precision::Float64, .dims = dims});
    CHECK(relative_norm(actual.at("y"), expected.at("y").values) < 3e-3);
  }
  CHECK(compiled <= 8);
}

TEST_CASE("set replaces a tensor between launches") {
  const Engine engine({.backend = Backend::Gpu, .cache_dir = ""});
  Graph graph("set");
  graph.output("y", graph.scale(graph.input("x", {1000}, DType::Float32), 2.0));
  const Plan plan = engine.build(graph);
  Buffer a = engine.allocate(plan.input("x"));
  Buffer b = engine.allocate(plan.input("x"));
  Buffer y = engine.allocate(plan.output("y"));
  a.upload(std::vector<float>(1000, 1.0F));
  b.upload(std::vector<float>(1000, 3.0F));
  Execution run =
      plan.bind(engine.load_weights(plan, std::span<const NamedTensor>()), {{"x", a}, {"y", y}});
  run.launch();
  CHECK(y.download_floats() == std::vector<float>(1000, 2.0F));
  run.set("x", b);
  run.launch();
  CHECK(y.download_floats() == std::vector<float>(1000, 6.0F));
}
