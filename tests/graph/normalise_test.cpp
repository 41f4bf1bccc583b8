#include "graph/normalise.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "graph/dump.hpp"
#include "graph/json.hpp"
#include "graph/op_info.hpp"
#include "layers.hpp"
#include "random_graph.hpp"

namespace stof::graph {
namespace {

std::vector<std::string> names(const Ir& ir, bool with_views) {
  std::vector<std::string> result;
  for (const Operator& op : ir.operators) {
    if (with_views || op_info(op.kind).op_class != OpClass::View) {
      result.emplace_back(name(op.kind));
    }
  }
  return result;
}

const Operator& first(const Ir& ir, OpKind kind) {
  return *std::ranges::find(ir.operators, kind, &Operator::kind);
}

const Value& value(const Ir& ir, int id) {
  return *ir.values[static_cast<std::size_t>(id)];
}

TEST_CASE("normalise: a BERT layer is the operators of the paper") {
  const Ir ir = normalise(bert_layer().ir());
  CHECK(names(ir, false) == std::vector<std::string>{"matmul", "add", "matmul", "scale", "mask",
                                                     "softmax", "matmul", "matmul", "add", "add",
                                                     "layer_norm", "matmul", "add", "gelu",
                                                     "matmul", "add", "add", "layer_norm"});
}

TEST_CASE("normalise for kernels: operands that are constant along some axes are broadcast") {
  Graph graph;
  const Tensor a = graph.input("a", {2, 3, 40, 24}, DType::Float16);
  const Tensor b = graph.input("b", {3, 24, 33}, DType::Float16);
  const Tensor shared = graph.input("shared", {1, 33, 8}, DType::Float16);
  const Tensor one = graph.input("one", {2, 1, 4, 1, 6}, DType::Float16);
  const Tensor row = graph.input("row", {6}, DType::Float16);
  graph.output("y", graph.matmul(graph.matmul(a, b), shared));
  graph.output("z", graph.add(graph.add(graph.broadcast(one, {2, 3, 4, 5, 6}), one), row));
  graph.output("four", graph.add(graph.reshape(one, {2, 4, 1, 6}), row));
  CHECK(names(normalise(graph.ir()), true) ==
        std::vector<std::string>{"matmul", "matmul", "broadcast", "add", "add", "reshape", "add"});
  const Ir ir = normalise_but_attention(graph.ir());
  REQUIRE(names(ir, true) == std::vector<std::string>{"broadcast", "matmul", "matmul", "broadcast",
                                                      "broadcast", "add", "broadcast", "add",
                                                      "reshape", "add"});
  CHECK(value(ir, ir.operators[0].outputs[0]).shape == Shape{2, 3, 24, 33});
  CHECK(value(ir, ir.operators[4].outputs[0]).shape == Shape{2, 3, 4, 5, 6});
}

TEST_CASE("normalise: linear follows the layout of its weight") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3, 8}, DType::Float16);
  const Tensor a = graph.weight("a", {4, 8}, DType::Float16);
  const Tensor b = graph.weight("b", {4, 5}, DType::Float16, {.layout = WeightLayout::InOut});
  const Tensor bias = graph.weight("bias", {5}, DType::Float16);
  graph.output("y", graph.linear(graph.linear(x, a), b, bias));
  const Ir ir = normalise(graph.ir());
  REQUIRE(names(ir, true) == std::vector<std::string>{"matmul", "matmul", "add"});
  CHECK(attribute<bool>(ir.operators[0], "transpose_b"));
  CHECK_FALSE(attribute<bool>(ir.operators[1], "transpose_b"));
  CHECK(value(ir, ir.operators[0].outputs[0]).name == "linear_4");
  CHECK(value(ir, ir.operators[1].outputs[0]).name == "linear_5.matmul");
  CHECK(value(ir, ir.outputs[0].value).name == "linear_5");
  CHECK(value(ir, ir.outputs[0].value).shape == Shape{2, 3, 5});
}

TEST_CASE(
    "normalise: attention keeps groups, lengths, masks, scores and log-sum-exp in one segment") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 6, 8, 16}, DType::Float16);
  const Tensor k = graph.input("k", {2, 3, 9, 16}, DType::Float16);
  const Tensor v = graph.input("v", {2, 3, 9, 4}, DType::Float16);
  const Tensor slope = graph.weight("slope", {6}, DType::Float32);
  const Tensor keep = graph.input("keep", {2, 9}, DType::Bool);
  const Tensor lengths = graph.input("lengths", {2}, DType::Int32);
  const AttentionResult result = graph.attention_with_lse(
      q, k, v,
      {.mask = key_padding(graph.capture(keep)),
       .mask_input = graph.mask_input("m", {8, 20}, {.form = MaskForm::Csr, .max_part_tiles = 3}),
       .score = score() * graph.capture(slope)(head_index()),
       .scale = 0.5,
       .kv_lengths = lengths});
  graph.output("y", result.output);
  graph.output("lse", result.lse);
  const Ir ir = normalise(graph.ir());
  REQUIRE(names(ir, true) ==
          std::vector<std::string>{"matmul", "scale", "score", "mask", "softmax", "matmul"});
  for (const Operator& op : ir.operators) {
    CHECK(op.segment == 0);
  }
  const Operator& scores = ir.operators[0];
  CHECK(scores.inputs == std::vector{0, 1});
  CHECK(attribute<std::int64_t>(scores, "group") == 2);
  CHECK(attribute<bool>(scores, "transpose_b"));
  CHECK(value(ir, scores.outputs[0]).dtype == DType::Float32);
  CHECK(value(ir, scores.outputs[0]).shape == Shape{2, 6, 8, 9});
  CHECK(attribute<double>(ir.operators[1], "factor") == 0.5);
  CHECK(ir.operators[2].captures == std::map<std::string, int>{{"slope", 3}});
  const Operator& mask = ir.operators[3];
  CHECK(mask.captures == std::map<std::string, int>{{"keep", 4}});
  CHECK(mask.inputs == std::vector{ir.operators[2].outputs[0], 5, 6, 7});
  CHECK(attribute<std::string>(mask, "mask_form") == "csr");
  CHECK(attribute<std::int64_t>(mask, "max_part_tiles") == 3);
  const Operator& softmax = ir.operators[4];
  REQUIRE(softmax.outputs.size() == 2);
  CHECK(ir.outputs[1].value == softmax.outputs[1]);
  CHECK(value(ir, softmax.outputs[1]).shape == Shape{2, 6, 8});
  const Operator& product = ir.operators[5];
  CHECK(attribute<std::int64_t>(product, "group") == 2);
  CHECK_FALSE(attribute<bool>(product, "transpose_b"));
  CHECK(ir.outputs[0].value == product.outputs[0]);
  CHECK(value(ir, ir.outputs[0].value).dtype == DType::Float16);
  CHECK(value(ir, ir.outputs[0].value).shape == Shape{2, 6, 8, 4});
}

TEST_CASE("normalise: attentions have segments of their own, with a mask even where all is seen") {
  Graph graph;
  const Tensor x = graph.input("x", {1, 2, 8, 16}, DType::Float16);
  graph.output("y", graph.attention(graph.attention(x, x, x), x, x));
  const Ir ir = normalise(graph.ir());
  REQUIRE(ir.operators.size() == 10);
  CHECK(ir.operators[0].segment == 0);
  CHECK(ir.operators[9].segment == 1);
  CHECK(first(ir, OpKind::Mask).attributes.empty());
  CHECK_FALSE(ir.operators[0].attributes.contains("group"));
}

TEST_CASE("normalise: outputs keep name, shape and dtype, and twice is once") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Graph graph = RandomGraph(seed).build(12);
    const Ir once = normalise(graph.ir());
    REQUIRE(once.outputs.size() == graph.ir().outputs.size());
    for (std::size_t i = 0; i < once.outputs.size(); ++i) {
      const Value& before = value(graph.ir(), graph.ir().outputs[i].value);
      const Value& after = value(once, once.outputs[i].value);
      CHECK(once.outputs[i].name == graph.ir().outputs[i].name);
      CHECK(after.name == before.name);
      CHECK(after.shape == before.shape);
      CHECK(after.dtype == before.dtype);
    }
    for (const Operator& op : once.operators) {
      CHECK_FALSE(op_info(op.kind).is_composite);
    }
    CHECK(to_json(normalise(once)).json == to_json(once).json);
    CHECK(to_json(from_json(to_json(once).json, to_json(once).data)).json == to_json(once).json);
  }
}

}  // namespace
}  // namespace stof::graph
