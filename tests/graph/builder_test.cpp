#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/ir.hpp"
#include "graph/op_info.hpp"
#include "stof/graph.hpp"

namespace stof {
namespace {

std::string type(const Tensor& tensor) {
  return fmt::format("{}{}", name(tensor.dtype()), tensor.shape().text());
}

const graph::Operator& last(const Graph& graph) {
  return graph.ir().operators.back();
}

TEST_CASE("builder: inputs and weights") {
  Graph graph("g");
  const Tensor x = graph.input("x", {8, 512, 768}, DType::Float16);
  CHECK(graph.name() == "g");
  CHECK(x);
  CHECK(x.name() == "x");
  CHECK(type(x) == "float16[8, 512, 768]");
  CHECK_FALSE(Tensor());
  const Tensor w = graph.weight("w", {768, 3}, DType::BFloat16, {.layout = WeightLayout::InOut});
  CHECK(graph.ir().values[1]->layout == WeightLayout::InOut);
  CHECK(graph.tensor("w").name() == w.name());
}

TEST_CASE("builder: linear") {
  Graph graph;
  const Tensor x = graph.input("x", {8, 512, 768}, DType::Float16);
  const Tensor out_in = graph.weight("a", {2304, 768}, DType::Float16);
  const Tensor in_out =
      graph.weight("b", {768, 3072}, DType::Float16, {.layout = WeightLayout::InOut});
  const Tensor bias = graph.weight("bias", {2304}, DType::Float16);
  const Tensor y = graph.linear(x, out_in, bias);
  CHECK(type(y) == "float16[8, 512, 2304]");
  CHECK(y.name() == "linear_4");
  CHECK(last(graph).inputs == std::vector{0, 1, 3});
  CHECK(type(graph.linear(x, in_out)) == "float16[8, 512, 3072]");
  CHECK(last(graph).inputs == std::vector{0, 2});
}

TEST_CASE("builder: matmul broadcasts and transposes") {
  Graph graph;
  const Tensor a = graph.input("a", {2, 1, 5, 7}, DType::Float32);
  const Tensor b = graph.input("b", {3, 7, 4}, DType::Float32);
  CHECK(type(graph.matmul(a, b)) == "float32[2, 3, 5, 4]");
  const Tensor c = graph.input("c", {3, 4, 7}, DType::Float32);
  CHECK(type(graph.matmul(a, c, false, true)) == "float32[2, 3, 5, 4]");
  const Tensor d = graph.input("d", {5, 6}, DType::Float32);
  CHECK(type(graph.matmul(a, d, true)) == "float32[2, 1, 7, 6]");
}

TEST_CASE("builder: elementwise operators broadcast as NumPy does") {
  Graph graph;
  const Tensor a = graph.input("a", {2, 1, 4}, DType::Float16);
  const Tensor b = graph.input("b", {3, 1}, DType::Float16);
  for (const Tensor& y : {graph.add(a, b), graph.subtract(a, b), graph.multiply(a, b),
                          graph.divide(a, b), graph.maximum(a, b), graph.minimum(a, b)}) {
    CHECK(type(y) == "float16[2, 3, 4]");
  }
  const Dim seq = graph.dim("seq", 1, 64);
  const Tensor s = graph.input("s", {seq, 1}, DType::Float16);
  const Tensor t = graph.input("t", {1, seq * 2}, DType::Float16);
  CHECK(type(graph.add(s, t)) == "float16[seq, 2 * seq]");
  CHECK(type(graph.add(s, s)) == "float16[seq, 1]");
}

TEST_CASE("builder: unary operators keep their type") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 6}, DType::BFloat16);
  for (const Tensor& y : {graph.scale(x, 2), graph.shift(x, 2), graph.relu(x), graph.gelu(x),
                          graph.gelu_tanh(x), graph.silu(x), graph.tanh(x), graph.sigmoid(x),
                          graph.exp(x), graph.sqrt(x), graph.reciprocal(x), graph.softmax(x)}) {
    CHECK(type(y) == "bfloat16[4, 6]");
  }
  CHECK(type(graph.cast(x, DType::Int32)) == "int32[4, 6]");
}

TEST_CASE("builder: an activation is the operator of its name") {
  Graph graph;
  const Tensor x = graph.input("x", {4}, DType::Float16);
  const std::pair<Activation, graph::OpKind> pairs[] = {
      {Activation::Relu, graph::OpKind::Relu},
      {Activation::Gelu, graph::OpKind::Gelu},
      {Activation::GeluTanh, graph::OpKind::GeluTanh},
      {Activation::Silu, graph::OpKind::Silu},
      {Activation::Tanh, graph::OpKind::Tanh},
      {Activation::Sigmoid, graph::OpKind::Sigmoid}};
  for (const auto& [activation, kind] : pairs) {
    graph.activation(x, activation);
    CHECK(last(graph).kind == kind);
  }
}

TEST_CASE("builder: norms and reductions") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 5, 16}, DType::Float16);
  const Tensor gamma = graph.weight("gamma", {16}, DType::Float32);
  CHECK(type(graph.layer_norm(x, gamma, gamma)) == "float16[2, 5, 16]");
  CHECK(type(graph.layer_norm(x, gamma, {})) == "float16[2, 5, 16]");
  CHECK(last(graph).inputs.size() == 2);
  CHECK(type(graph.rms_norm(x, gamma)) == "float16[2, 5, 16]");
  CHECK(graph::attribute<double>(last(graph), "epsilon") == 1e-6);
  CHECK(type(graph.reduce_sum(x, 1)) == "float16[2, 16]");
  CHECK(type(graph.reduce_mean(x, -1, true)) == "float16[2, 5, 1]");
  CHECK(graph::attribute<std::int64_t>(last(graph), "axis") == 2);
  CHECK(type(graph.reduce_max(x, 0)) == "float16[5, 16]");
}

TEST_CASE("builder: embedding, rotary, patches") {
  Graph graph;
  const Tensor table = graph.weight("table", {1000, 64}, DType::Float16);
  const Tensor ids = graph.input("ids", {2, 9}, DType::Int64);
  CHECK(type(graph.embedding(table, ids)) == "float16[2, 9, 64]");
  const Tensor x = graph.input("x", {2, 4, 9, 16}, DType::Float16);
  CHECK(type(graph.rotary(x)) == "float16[2, 4, 9, 16]");
  CHECK(graph::attribute<std::int64_t>(last(graph), "rotary_dim") == 16);
  CHECK(graph::attribute<std::string>(last(graph), "style") == "half");
  const Tensor positions = graph.input("positions", {2, 9}, DType::Int32);
  const Tensor row = graph.input("row", {9}, DType::Int32);
  CHECK(type(graph.rotary(x, {.rotary_dim = 8}, positions)) == "float16[2, 4, 9, 16]");
  CHECK(type(graph.rotary(x, {.style = RotaryStyle::Interleaved}, row)) == "float16[2, 4, 9, 16]");
  const Tensor images = graph.input("images", {2, 3, 32, 48}, DType::Float32);
  CHECK(type(graph.patches(images, 8)) == "float32[2, 24, 192]");
}

TEST_CASE("builder: views") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 6, 4}, DType::Float16);
  CHECK(type(graph.reshape(x, {2, -1, 8})) == "float16[2, 3, 8]");
  CHECK(type(graph.transpose(x, {2, 0, 1})) == "float16[4, 2, 6]");
  CHECK(type(graph.transpose(x, {0, -1, 1})) == "float16[2, 4, 6]");
  CHECK(type(graph.slice(x, 1, 2, 3)) == "float16[2, 3, 4]");
  CHECK(type(graph.slice(x, -1, 0, 1)) == "float16[2, 6, 1]");
  CHECK(type(graph.concat({x, x}, 1)) == "float16[2, 12, 4]");
  CHECK(type(graph.concat({x, graph.slice(x, 2, 0, 1)}, -1)) == "float16[2, 6, 5]");
  const Tensor row = graph.input("row", {1, 4}, DType::Float16);
  CHECK(type(graph.broadcast(row, {2, 6, 4})) == "float16[2, 6, 4]");
}

TEST_CASE("builder: heads are slices, reshapes and transposes") {
  Graph graph;
  const Dim seq = graph.dim("seq", 1, 512);
  const Tensor x = graph.input("x", {8, seq, 1024}, DType::Float16);
  CHECK(type(graph.split_heads(x, 16)) == "float16[8, 16, seq, 64]");
  CHECK(type(graph.merge_heads(graph.split_heads(x, 16))) == "float16[8, seq, 1024]");
  const QkvHeads heads = graph.split_qkv(x, {.heads = 8, .kv_heads = 4});
  CHECK(type(heads.q) == "float16[8, 8, seq, 64]");
  CHECK(type(heads.k) == "float16[8, 4, seq, 64]");
  CHECK(type(heads.v) == "float16[8, 4, seq, 64]");
  for (const graph::Operator& op : graph.ir().operators) {
    CHECK(graph::op_info(op.kind).op_class == graph::OpClass::View);
  }
}

TEST_CASE("builder: attention") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 12, 128, 64}, DType::Float16);
  const Tensor k = graph.input("k", {2, 4, 100, 64}, DType::Float16);
  const Tensor v = graph.input("v", {2, 4, 100, 32}, DType::Float16);
  CHECK(type(graph.attention(q, k, v)) == "float16[2, 12, 128, 32]");
  CHECK(graph::attribute<double>(last(graph), "scale") == 1 / std::sqrt(64.0));
  CHECK_FALSE(last(graph).attributes.contains("mask"));
  const AttentionResult both = graph.attention_with_lse(q, k, v, {.mask = causal(), .scale = 1});
  CHECK(type(both.output) == "float16[2, 12, 128, 32]");
  CHECK(type(both.lse) == "float32[2, 12, 128]");
  CHECK(graph::attribute<double>(last(graph), "scale") == 1);
  const Tensor lengths = graph.input("lengths", {2}, DType::Int32);
  graph.attention(q, k, v, {.kv_lengths = lengths});
  CHECK(last(graph).inputs == std::vector{0, 1, 2, 6});
}

TEST_CASE("builder: masks and scores bind what they capture") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 4, 8, 16}, DType::Float16);
  const Tensor slope = graph.weight("alibi-slope", {4}, DType::Float32);
  const Tensor keep = graph.input("keep", {2, 8}, DType::Bool);
  const Capture slopes = graph.capture(slope);
  CHECK(slopes.name() == "alibi_slope");
  const Capture renamed = graph.capture(keep, "padding");
  graph.attention(
      q, q, q,
      {.mask = key_padding(renamed) && causal(),
       .score = score() + slopes(head_index()) * to_float(key_position() - query_position())});
  CHECK(last(graph).captures == std::map<std::string, int>{{"alibi_slope", 1}, {"padding", 2}});
}

TEST_CASE("builder: run-time masks are inputs") {
  Graph graph;
  const Tensor q = graph.input("q", {2, 4, 8, 16}, DType::Float16);
  const MaskInput lengths = graph.mask_input("lengths", {2}, {.form = MaskForm::KeyLengths});
  const MaskInput documents = graph.mask_input("documents", {5}, {.form = MaskForm::CuSeqlens});
  const MaskInput dense = graph.mask_input("dense", {1, 4, 8, 8}, {.form = MaskForm::Dense});
  const MaskInput csr = graph.mask_input("csr", {8, 20}, {.form = MaskForm::Csr, .like = causal()});
  CHECK(type(lengths.tensors[0]) == "int32[2]");
  CHECK(type(dense.tensors[0]) == "bool[1, 4, 8, 8]");
  CHECK(type(csr.tensors[0]) == "int32[9]");
  CHECK(csr.tensors[0].name() == "csr.row_ptr");
  CHECK(type(csr.tensors[1]) == "int32[20]");
  CHECK(csr.tensors[1].name() == "csr.col_idx");
  for (const MaskInput& mask : {lengths, documents, dense, csr}) {
    CHECK(type(graph.attention(q, q, q, {.mask = causal(), .mask_input = mask})) ==
          "float16[2, 4, 8, 16]");
  }
  CHECK(last(graph).inputs == std::vector{0, 0, 0, -1, 4, 5});
  CHECK(graph::attribute<std::string>(last(graph), "mask_form") == "csr");
}

TEST_CASE("builder: a copy is independent, and older handles serve both") {
  Graph graph;
  const Tensor x = graph.input("x", {4}, DType::Float16);
  Graph copy = graph;
  const Tensor in_copy = copy.relu(x);
  CHECK(graph.ir().operators.empty());
  CHECK(copy.ir().operators.size() == 1);
  graph.tanh(x);
  CHECK_THROWS_WITH(graph.relu(in_copy), "relu: x is a tensor of another graph, relu_1");
  graph = copy;
  CHECK(graph.relu(in_copy).name() == "relu_2");
  const Graph moved = std::move(copy);
  CHECK(moved.ir().operators.size() == 1);
}

TEST_CASE("builder: results avoid the names of inputs") {
  Graph graph;
  const Tensor x = graph.input("relu_1", {4}, DType::Float16);
  CHECK(graph.relu(x).name() == "relu_1_");
}

}  // namespace
}  // namespace stof
