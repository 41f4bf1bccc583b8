#include "fusion/lower.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/device_profile.hpp"
#include "engine/operator_cases.hpp"
#include "fusion/lowering_testing.hpp"
#include "graph/normalise.hpp"
#include "render/template_store.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

// Without the kernel for a single product of few rows, which two of in turn are faster than one
// launch for both of most shapes.
fusion::Lowered lowered_to_chains(const Graph& graph) {
  fusion::TemplateLibrary library = testing::shipped_templates();
  std::erase_if(library, [](const fusion::KernelTemplate& kernel) {
    return kernel.contract.name == "gemm_few_rows";
  });
  return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                       base::shipped_profile("h200"));
}

// What the launches compute, in order.
std::vector<std::string> labels(const fusion::Lowered& lowered) {
  std::vector<std::string> labels;
  for (const kernel::LaunchRecord& launch : lowered.program.launches) {
    labels.push_back(launch.label);
  }
  return labels;
}

}  // namespace

TEST_CASE("a transformer layer") {
  Graph graph("bert_layer");
  const auto x = graph.input("x", {8, 512, 768}, DType::Float16);
  const auto w = graph.weight("w_qkv", {2304, 768}, DType::Float16);
  const auto b = graph.weight("b_qkv", {2304}, DType::Float16);
  const auto w_o = graph.weight("w_o", {768, 768}, DType::Float16);
  const auto b_o = graph.weight("b_o", {768}, DType::Float16);
  const auto gamma = graph.weight("gamma", {768}, DType::Float16);
  const auto beta = graph.weight("beta", {768}, DType::Float16);
  const auto qkv = graph.linear(x, w, b);
  const auto heads = graph.split_qkv(qkv, {.heads = 12, .kv_heads = 12});
  const auto ctx = graph.merge_heads(
      graph.attention(heads.q, heads.k, heads.v, {.mask = sliding_window(64, 64)}));
  graph.output("y", graph.layer_norm(graph.add(graph.linear(ctx, w_o, b_o), x), gamma, beta));
  CHECK(labels(testing::lowered_by(graph)) ==
        std::vector<std::string>{"linear_7.matmul, linear_7", "attention_17", "linear_20.matmul",
                                 "linear_20, add_21, layer_norm_22"});
}

TEST_CASE("a gated layer is one launch, whatever its activation is") {
  int count = 0;
  for (const testing::OperatorCase& of : testing::gated_cases()) {
    const Graph graph = of.build(DType::Float16);
    const fusion::Lowered result = testing::lowered_by(graph);
    const kernel::KernelSpec& spec = result.specs.back();
    if (spec.entry.starts_with("gated_")) {
      ++count;
      CHECK(graph.dump().find(spec.variables["op"]["activated"].get<std::string>() + "(") !=
            std::string::npos);
    }
  }
  CHECK(count == 5);  // all but those of few tokens and those that TMA cannot store
}

TEST_CASE("LLaMA's gated layer is one launch from a short prompt on") {
  for (const std::int64_t tokens : {128, 4096, 32768}) {
    Graph graph("llama");
    const auto x = graph.input("x", {tokens, 4096}, DType::Float16);
    const auto gate = graph.linear(x, graph.weight("gate", {11008, 4096}, DType::Float16));
    const auto up = graph.linear(x, graph.weight("up", {11008, 4096}, DType::Float16));
    graph.output("y", graph.multiply(graph.silu(gate), up));
    CHECK(testing::lowered_by(graph).program.kernels == std::vector<std::string>{"gated_sm90"});
  }
}

TEST_CASE("both products of an MLP are one launch where one token reads large weights, or few do") {
  const auto kernels = [](std::int64_t tokens, std::int64_t hidden, WeightLayout layout) {
    Graph graph("mlp");
    const auto weight = [&](const char* name, std::int64_t n, std::int64_t k) {
      const Shape shape = layout == WeightLayout::OutIn ? Shape{n, k} : Shape{k, n};
      return graph.weight(name, shape, DType::Float16, {.layout = layout});
    };
    const auto x = graph.input("x", {tokens, hidden}, DType::Float16);
    const auto b = graph.weight("b", {4 * hidden}, DType::Float16);
    const auto inner = graph.gelu(graph.linear(x, weight("w", 4 * hidden, hidden), b));
    const auto c = graph.weight("c", {hidden}, DType::Float16);
    const auto outer = graph.linear(inner, weight("v", hidden, 4 * hidden), c);
    graph.output("y", graph.add(outer, x));
    return testing::lowered_by(graph).program.kernels;
  };
  using Kernels = std::vector<std::string>;
  for (const WeightLayout layout : {WeightLayout::OutIn, WeightLayout::InOut}) {
    CHECK(kernels(16, 1024, layout) == Kernels{"chain_sm90"});
    for (const std::int64_t hidden : {768, 1024}) {
      for (const std::int64_t tokens : {128, 512, 4096}) {
        CHECK(kernels(tokens, hidden, layout) != Kernels{"chain_sm90"});
      }
    }
  }
  CHECK(kernels(1, 4096, WeightLayout::OutIn) == Kernels{"chain_sm90"});
  for (const std::int64_t tokens : {1, 4, 64}) {
    CHECK(kernels(tokens, 768, WeightLayout::OutIn) != Kernels{"chain_sm90"});
  }
  for (const std::int64_t tokens : {16, 64}) {
    CHECK(kernels(tokens, 4096, WeightLayout::OutIn) != Kernels{"chain_sm90"});
  }
}

TEST_CASE("a chain of few rows is one launch, whatever its activation is") {
  for (const testing::OperatorCase& of : testing::chained_product_cases()) {
    const Graph graph = of.build(DType::Float16);
    const fusion::Lowered result = lowered_to_chains(graph);
    const kernel::KernelSpec& spec = result.specs.back();
    std::string options;
    for (const fusion::Option& option : result.options.back()) {
      options += "\n" + option.text();
    }
    INFO(of.name, ": ", fmt::format("{}", fmt::join(result.program.kernels, " ")), options);
    REQUIRE(spec.entry.find("chain_sm") != std::string::npos);
    CHECK(graph.dump().find(spec.variables["op"]["activated"].get<std::string>() + "(") !=
          std::string::npos);
  }
}

TEST_CASE("LLaMA's MLP is one launch where it decodes one token") {
  const auto kernels = [](std::int64_t tokens) {
    Graph graph("llama");
    const auto x = graph.input("x", {tokens, 4096}, DType::Float16);
    const auto gate = graph.linear(x, graph.weight("gate", {11008, 4096}, DType::Float16));
    const auto up = graph.linear(x, graph.weight("up", {11008, 4096}, DType::Float16));
    const auto inner = graph.multiply(graph.silu(gate), up);
    const auto outer = graph.linear(inner, graph.weight("down", {4096, 11008}, DType::Float16));
    graph.output("y", graph.add(outer, x));
    return testing::lowered_by(graph).program.kernels;
  };
  using Kernels = std::vector<std::string>;
  CHECK(kernels(1) == Kernels{"gated_chain_sm90"});
  CHECK(kernels(16) != Kernels{"gated_chain_sm90"});
  CHECK(kernels(128) != Kernels{"gated_chain_sm90"});
}

TEST_CASE("weights of a pattern lie alike") {
  Graph graph("mixed");
  const auto x = graph.input("x", {16, 768}, DType::Float16);
  const auto w = graph.weight("w", {3072, 768}, DType::Float16);
  const auto v = graph.weight("v", {3072, 768}, DType::Float16, {.layout = WeightLayout::InOut});
  graph.output("y", graph.linear(graph.gelu(graph.linear(x, w)), v));
  CHECK(testing::lowered_by(graph).program.launches.size() == 2);
}

TEST_CASE("a product takes the norm behind it along where there are many rows") {
  const auto kernels = [](std::int64_t tokens, bool gives_sum, WeightLayout layout) {
    Graph graph("product_norm");
    const auto x = graph.input("x", {tokens, 768}, DType::Float16);
    const auto r = graph.input("r", {tokens, 768}, DType::Float16);
    const auto w = graph.weight("w", {768, 768}, DType::Float16, {.layout = layout});
    const auto b = graph.weight("b", {768}, DType::Float16);
    const auto gain = graph.weight("gain", {768}, DType::Float16);
    const auto sum = graph.add(graph.linear(x, w, b), r);
    graph.output("y", graph.rms_norm(sum, gain));
    if (gives_sum) {
      graph.output("sum", sum);
    }
    return testing::lowered_by(graph).program.kernels;
  };
  using Kernels = std::vector<std::string>;
  for (const WeightLayout layout : {WeightLayout::OutIn, WeightLayout::InOut}) {
    CHECK(kernels(32768, false, layout) == Kernels{"gemm_norm"});
    CHECK(kernels(32768, true, layout) == Kernels{"gemm_sum_norm"});
  }
}

TEST_CASE("a tensor map begins with the axis that lies together") {
  const auto weight_map = [](WeightLayout layout) {
    Graph graph("product");
    const auto x = graph.input("x", {4096, 4096}, DType::Float16);
    const Shape shape = layout == WeightLayout::OutIn ? Shape{2048, 4096} : Shape{4096, 2048};
    graph.output("y",
                 graph.linear(x, graph.weight("w", shape, DType::Float16, {.layout = layout})));
    const fusion::Lowered result = testing::lowered_by(graph);
    REQUIRE(result.program.kernels == std::vector<std::string>{"gemm_tma"});
    return std::get<kernel::TensorMap>(result.program.launches.at(0).arguments.at(1));
  };
  const kernel::TensorMap turned = weight_map(WeightLayout::OutIn);
  CHECK(turned.extents == std::vector<std::int64_t>{1, 2048, 4096});
  CHECK(turned.strides.back() == 1);
  CHECK(turned.box.back() == 64);
  CHECK(turned.box[1] > 64);
  const kernel::TensorMap plain = weight_map(WeightLayout::InOut);
  CHECK(plain.extents == std::vector<std::int64_t>{1, 4096, 2048});
  CHECK(plain.box == std::vector<std::int64_t>{1, 64, 64});
}

TEST_CASE("an epilogue reads nothing that its own kernel makes") {
  Graph graph("norm");
  const auto sum = graph.add(graph.input("x", {8, 64}, DType::Float16),
                             graph.input("r", {8, 64}, DType::Float16));
  const auto norm = graph.layer_norm(sum, graph.weight("g", {64}, DType::Float16), {});
  graph.output("y", graph.relu(graph.add(norm, sum)));
  CHECK(labels(testing::lowered_by(graph)) ==
        std::vector<std::string>{"add_2, layer_norm_4", "add_5, relu_6"});
}

TEST_CASE("templates with an epilogue and without one have one pattern") {
  fusion::TemplateLibrary both = testing::shipped_templates();
  const auto norm = std::find_if(both.begin(), both.end(), [](const fusion::KernelTemplate& one) {
    return one.contract.name == "rms_norm";
  });
  REQUIRE(norm != both.end());
  fusion::KernelTemplate plain = *norm;
  plain.file = "mine/plain.jinja";
  plain.contract.name = "plain_norm";
  plain.contract.hooks.clear();
  plain.contract.cost = {};  // it says that it is the faster one
  const auto with = [](const fusion::TemplateLibrary& library, bool has_epilogue) {
    Graph graph("norm");
    const auto x = graph.input("x", {8, 64}, DType::Float16);
    const auto y = graph.rms_norm(x, graph.weight("g", {64}, DType::Float16));
    graph.output("y", has_epilogue ? graph.relu(y) : y);
    return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                         base::shipped_profile("h200"));
  };
  // Before the other or behind it: what has an epilogue is fused with it.
  for (const auto place : {both.begin(), both.end()}) {
    fusion::TemplateLibrary library(both.begin(), place);
    library.push_back(plain);
    library.insert(library.end(), place, both.end());
    CHECK(labels(with(library, true)) == std::vector<std::string>{"rms_norm_2, relu_3"});
    CHECK(with(library, true).program.kernels == std::vector<std::string>{"rms_norm"});
    CHECK(with(library, false).program.kernels == std::vector<std::string>{"plain_norm"});
  }
}

TEST_CASE("a pattern that does not fit leaves its operators to other templates") {
  auto texts = render::TemplateStore::open({}).texts();
  const auto with_work = [&](int times) {
    texts["mine/add_silu.jinja"] = fmt::format(R"contract({{#
{{ "contract": 1, "name": "add_silu", "version": 1, "summary": "y = silu(a + b)",
  "ports": {{ "a": {{"shape": ["rows", "columns"], "dtype": "T"}}, "b": {{"like": "a"}}, "y": {{"like": "a"}} }},
  "pattern": ["sum = add(a, b)", "y = silu(sum)"],
  "dtypes": {{"T": ["float16"]}}, "accumulate": "float32", "constraints": ["dim.columns % 8 == 0"],
  "resources": {{ "threads": "256", "shared_bytes": "0", "registers": "32" }},
  "launch": {{ "grid": ["ceil_div(dim.rows * dim.columns, 2048)"], "block": ["256"], "pdl": true,
              "arguments": ["a", "b", "y", "dim.rows * dim.columns"] }},
  "cost": {{ "flops": "{} * dim.rows * dim.columns", "bytes": "3 * dim.rows * dim.columns * size.T" }},
  "deterministic": true, "tests": [{{"rows": 1, "columns": 8}}] }}
#}})contract",
                                               times);
    return fusion::read_templates(texts);
  };
  const auto kernels = [](const fusion::TemplateLibrary& library, DType dtype, const Shape& shape,
                          const Shape& addend) {
    Graph graph("add_silu");
    const auto sum = graph.add(graph.input("a", shape, dtype), graph.input("b", addend, dtype));
    graph.output("y", graph.silu(sum));
    return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                         base::shipped_profile("h200"))
        .program.kernels;
  };
  const std::vector<std::string> mine = {"add_silu"}, shipped = {"elementwise"};
  const Shape shape = {4096, 1024}, odd = {4096, 1023};
  const fusion::TemplateLibrary lean = with_work(6);
  CHECK(kernels(lean, DType::Float16, shape, shape) == mine);
  CHECK(kernels(lean, DType::Float32, shape, shape) == shipped);  // of dtypes
  CHECK(kernels(lean, DType::Float16, odd, odd) == shipped);      // of constraints
  CHECK(kernels(lean, DType::Float16, shape, {1024}) == shipped);
  CHECK(kernels(with_work(3000), DType::Float16, shape, shape) == shipped);  // it is slower
}

TEST_CASE("ports have the names that their author likes, and patterns may begin with a reduction") {
  const auto kernels = [](const std::string& ports, const std::string& pattern,
                          const std::string& arguments, const Graph& graph) {
    auto texts = render::TemplateStore::open({}).texts();
    texts["mine/mine.jinja"] = fmt::format(R"contract({{#
{{ "contract": 1, "name": "mine", "version": 1, "summary": "what costs nothing", "replaces": "reduce_max",
  "ports": {{ {} }}, "pattern": [ {} ], "dtypes": {{"T": ["float16"]}}, "accumulate": "float32",
  "resources": {{ "threads": "256", "shared_bytes": "0", "registers": "32" }},
  "launch": {{ "grid": ["1"], "block": ["256"], "arguments": [ {} ] }},
  "deterministic": true }}
#}})contract",
                                           ports, pattern, arguments);
    return fusion::lower(graph::normalise_but_attention(graph.ir()), fusion::read_templates(texts),
                         base::shipped_profile("h200"))
        .program.kernels;
  };
  const std::vector<std::string> mine = {"mine"};

  Graph product("product");
  product.output("y", product.matmul(product.input("x", {64, 32}, DType::Float16),
                                     product.input("w", {32, 48}, DType::Float16)));
  CHECK(kernels(R"json("a": {"shape": ["batch", "m", "k"], "dtype": "T"},
                       "b": {"shape": ["batch", "k", "n"], "dtype": "T"},
                       "c": {"shape": ["batch", "m", "n"], "dtype": "T"})json",
                R"json("c = matmul(a, b; transpose_b: bool)")json", R"json("a", "b", "c")json",
                product) == mine);

  Graph largest("largest");
  largest.output("y", largest.reduce_max(largest.input("x", {64, 32, 8}, DType::Float16), 1));
  CHECK(kernels(R"json("src": {"shape": ["outer", "axis", "inner"], "dtype": "T"},
                       "dst": {"shape": ["outer", "inner"], "dtype": "T"})json",
                R"json("dst = reduce_max(src)")json", R"json("src", "dst")json", largest) == mine);

  Graph shifted("shifted");
  const auto x = shifted.input("x", {4, 64, 32}, DType::Float16);
  shifted.output("y", shifted.exp(shifted.subtract(x, shifted.reduce_max(x, -1, true))));
  CHECK(kernels(R"json("src": {"shape": ["rows", "hidden"], "dtype": "T"},
                       "dst": {"like": "src"})json",
                R"json("top = reduce_max(src; axis = -1, keep_axis = 1)",
                       "rest = subtract(src, top)", "dst = exp(rest)")json",
                R"json("src", "dst")json", shifted) == mine);
}

TEST_CASE("each way to run a launch is listed once") {
  Graph graph("norm");
  const Shape shape = {4096, 1024};
  const auto x = graph.input("x", shape, DType::Float16);
  const auto w = graph.weight("w", {1024, 1024}, DType::Float16);
  const auto sum = graph.add(graph.linear(x, w), graph.input("r", shape, DType::Float16));
  const auto norm = graph.rms_norm(sum, graph.weight("g", {1024}, DType::Float16));
  graph.output("y", graph.multiply(norm, graph.add(sum, graph.input("s", shape, DType::Float16))));
  const graph::Ir ir = graph::normalise_but_attention(graph.ir());
  for (const bool lists_all : {false, true}) {
    const fusion::Lowered result =
        fusion::lower(ir, testing::shipped_templates(), base::shipped_profile("h200"), {},
                      {.scheme = {}, .settings = {}, .lists_all = lists_all});
    for (const std::vector<fusion::Option>& options : result.options) {
      std::set<std::pair<std::string, kernel::KernelConfig>> ways;
      for (const fusion::Option& option : options) {
        CHECK_MESSAGE(ways.emplace(option.kernel, option.config).second, option.text());
      }
    }
  }
}

TEST_CASE("a chain ends where it would read too many tensors for the registers") {
  Graph graph("chain");
  Tensor y = graph.input("x", {64, 768}, DType::Float16);
  for (int i = 0; i < 40; ++i) {
    y = graph.scale(graph.add(y, graph.input("t" + std::to_string(i), {64, 768}, DType::Float16)),
                    0.5);
  }
  graph.output("y", y);
  CHECK(labels(testing::lowered_by(graph)).size() == 3);
}

TEST_CASE("attention writes as its views want it while channels stay together") {
  const auto labels_of = [](const auto& view) {
    Graph graph("attention");
    const auto q = graph.input("q", {2, 2, 40, 32}, DType::Float16);
    graph.output("y", view(graph, graph.attention(q, q, q)));
    return labels(testing::lowered_by(graph));
  };
  CHECK(labels_of([](Graph& graph, const Tensor& o) { return graph.merge_heads(o); }) ==
        std::vector<std::string>{"attention_1"});
  CHECK(labels_of([](Graph& graph, const Tensor& o) {
          return graph.transpose(graph.merge_heads(o), {0, 2, 1});
        }) == std::vector<std::string>{"attention_1", "output 'y'"});
}

TEST_CASE("nothing is launched for tensors without elements") {
  Graph graph("empty");
  const Tensor q = graph.input("q", {2, 4, 0, 64}, DType::Float16);
  const Tensor k = graph.input("k", {2, 4, 90, 64}, DType::Float16);
  graph.output("y", graph.merge_heads(graph.attention(q, k, k, {.mask = causal()})));
  graph.output("copy", graph.transpose(q, {1, 0, 2, 3}));
  CHECK(labels(testing::lowered_by(graph)).empty());
}

TEST_CASE("integers are cast by copies, one cast a kernel") {
  Graph graph("casts");
  const auto ids = graph.input("ids", {5, 24}, DType::Int64);
  graph.output("y",
               graph.cast(graph.cast(graph.cast(ids, DType::Int32), DType::Bool), DType::Float16));
  const fusion::Lowered result = testing::lowered_by(graph);
  CHECK(labels(result) == std::vector<std::string>{"cast_1", "cast_2", "cast_3"});
  for (const kernel::KernelSpec& spec : result.specs) {
    CHECK(spec.variables["hook"]["epilogue"]["statements"].empty());
  }
}

TEST_CASE("every operator has a template, on every GPU") {
  for (const auto& cases :
       {testing::matmul_cases(), testing::gated_cases(), testing::normed_product_cases(),
        testing::chained_product_cases(), testing::row_cases(), testing::other_cases(),
        testing::attention_cases(), testing::attention_cases(34)}) {
    for (const testing::OperatorCase& of : cases) {
      for (const DType dtype : {DType::Float16, DType::BFloat16}) {
        const std::string text = of.name + " " + std::string(name(dtype));
        try {
          testing::lowered_by(of.build(dtype));
        } catch (const Error& error) {
          FAIL_CHECK(text, ": ", std::string(error.what()));
        }
      }
    }
  }
}

TEST_CASE("a pattern may begin with an elementwise operator, and names the axis that it is about") {
  const std::vector<std::filesystem::path> folders = {STOF_SOURCE_DIR
                                                      "/examples/04_custom_template/templates"};
  const fusion::TemplateLibrary library =
      fusion::read_templates(render::TemplateStore::open(folders).texts());
  const auto kernels = [&](const std::vector<Dim>& shape, int axis, bool keep_axis) {
    Graph graph("unit");
    const auto x = graph.input("x", Shape(shape), DType::Float16);
    const auto sum = graph.reduce_sum(graph.multiply(x, x), axis, keep_axis);
    graph.output("y", graph.divide(x, graph.sqrt(sum)));
    return fusion::lower(graph::normalise_but_attention(graph.ir()), library,
                         base::shipped_profile("h200"))
        .program.kernels;
  };
  const std::vector<std::string> fused = {"unit_rows"};
  CHECK(kernels({64, 64}, 1, true) == fused);
  CHECK(kernels({3, 5, 64}, 2, true) == fused);
  CHECK(kernels({64, 64}, 0, true) != fused);
  CHECK(kernels({64, 64}, 1, false) != fused);  // divides by the lengths of other rows
}
