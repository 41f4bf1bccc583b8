#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "graph/append.hpp"
#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {
namespace {

struct Fixture {
  Graph graph = Graph("g");
  Tensor x = graph.input("x", {8, 512, 768}, DType::Float16);
  Tensor vector = graph.weight("vector", {512}, DType::Float16);
  Tensor ids = graph.input("ids", {8}, DType::Int32);
};

TEST_CASE_FIXTURE(Fixture, "builder errors: handles") {
  Graph other;
  const Tensor far = other.input("far", {8}, DType::Float16);
  CHECK_THROWS_WITH(graph.add(x, Tensor()), "add: b is an empty handle");
  CHECK_THROWS_WITH(graph.add(far, x), "add: a is a tensor of another graph, far");
  CHECK_THROWS_WITH(graph.concat({x, Tensor()}, 0), "concat: parts[1] is an empty handle");
  CHECK_THROWS_WITH(graph.output("y", far), "output y: value is a tensor of another graph, far");
  CHECK_THROWS_WITH(graph.split_qkv(Tensor(), {.heads = 4}), "split_qkv: x is an empty handle");
  CHECK_THROWS_WITH(graph.reduce_sum(Tensor(), 3), "reduce_sum: x is an empty handle");
  CHECK_THROWS_WITH(graph.reshape(Tensor(), {3}), "reshape: x is an empty handle");
  CHECK_THROWS_WITH(Tensor().shape(), "tensor: an empty handle has no shape");
  CHECK_THROWS_WITH(Tensor().name(), "tensor: an empty handle has no name");
  CHECK_THROWS_WITH(Tensor().dtype(), "tensor: an empty handle has no dtype");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: names") {
  CHECK_THROWS_WITH(graph.input("x", {1}, DType::Bool),
                    "input x: the graph has a tensor of this name already");
  CHECK_THROWS_WITH(graph.weight("x", {1}, DType::Bool),
                    "weight x: the graph has a tensor of this name already");
  graph.output("y", x);
  CHECK_THROWS_WITH(graph.output("y", x), "output y: the graph has an output of this name already");
  CHECK_THROWS_WITH(graph.input("", {1}, DType::Bool),
                    "input: the name \"\" is not 1 to 256 printable ASCII characters");
  CHECK_THROWS_WITH(graph.input("a\nb", {1}, DType::Bool),
                    "input: the name \"a\\x0ab\" is not 1 to 256 printable ASCII characters");
  CHECK_THROWS_WITH(graph.weight(std::string(257, 'a'), {1}, DType::Bool),
                    ("weight: the name \"" + std::string(40, 'a') +
                     "\"... is not 1 to 256 printable ASCII characters")
                        .c_str());
  CHECK_THROWS_WITH(Graph(""), "graph: the name \"\" is not 1 to 256 printable ASCII characters");
  CHECK_THROWS_WITH(graph.tensor("z"), "graph g: it has no tensor z");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: shapes and dtypes of inputs") {
  CHECK_THROWS_WITH(graph.input("z", {4, -1}, DType::Float16),
                    "input z [4, -1] has the negative extent -1");
  const Dim seq = graph.dim("seq", 1, 64);
  CHECK_THROWS_WITH(graph.input("z", {seq - 2}, DType::Float16),
                    "input z [seq - 2] has the extent seq - 2, which may be -1");
  CHECK_THROWS_WITH(graph.input("z", {1, 1, 1, 1, 1, 1, 1, 1, 1}, DType::Float16),
                    "input z has rank 9, at most 8 is allowed");
  CHECK_THROWS_WITH(graph.input("z", {1 << 30, 1 << 30, 2}, DType::Float16),
                    "input z [1073741824, 1073741824, 2] has more than 2^60 elements");
  CHECK_THROWS_WITH(graph.input("z", {4}, static_cast<DType>(9)), "input z: unknown dtype 9");
  CHECK_THROWS_WITH(graph.weight("z", {seq, 4}, DType::Float16),
                    "weight z: [seq, 4] is symbolic, a weight has one shape for good");
  CHECK_THROWS_WITH(graph.weight("z", {4, 4}, DType::Float16, {static_cast<WeightLayout>(9)}),
                    "weight z: unknown layout 9");
  CHECK_THROWS_WITH(graph.dim("seq", 1, 65),
                    "dim: dim seq has the range [1, 65] here, [1, 64] in this graph");
  CHECK_THROWS_WITH(graph.input("z", {Dim::symbol("seq", 0, 64)}, DType::Float16),
                    "input z: dim seq has the range [0, 64] here, [1, 64] in this graph");
  CHECK(graph.ir().values.size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "builder errors: linear") {
  const Tensor w = graph.weight("w", {2304, 512}, DType::Float16);
  const Tensor t = graph.weight("t", {512, 2304}, DType::Float16, {.layout = WeightLayout::InOut});
  CHECK_THROWS_WITH(graph.linear(x, w),
                    "linear: x [8, 512, 768] ends in 768, weight [2304, 512] (out, in) takes 512");
  CHECK_THROWS_WITH(graph.linear(x, t),
                    "linear: x [8, 512, 768] ends in 768, weight [512, 2304] (in, out) takes 512");
  const Tensor in_out = graph.weight("in_out", {768, 512}, DType::Float16);
  CHECK_THROWS_WITH(
      graph.linear(x, in_out),
      "linear: x [8, 512, 768] ends in 768, weight [768, 512] (out, in) takes 512; if it "
      "lies (in, out), give it .layout = WeightLayout::InOut");
  CHECK_THROWS_WITH(
      graph.linear(x, in_out, vector),
      "linear: x [8, 512, 768] ends in 768, weight [768, 512] (out, in) takes 512; if it "
      "lies (in, out), give it .layout = WeightLayout::InOut");
  CHECK_THROWS_WITH(graph.linear(x, in_out, graph.weight("other", {768}, DType::Float16)),
                    "linear: x [8, 512, 768] ends in 768, weight [768, 512] (out, in) takes 512");
  const Tensor out_in =
      graph.weight("out_in", {512, 768}, DType::Float16, {.layout = WeightLayout::InOut});
  CHECK_THROWS_WITH(
      graph.linear(x, out_in),
      "linear: x [8, 512, 768] ends in 768, weight [512, 768] (in, out) takes 512; if it "
      "lies (out, in), give it .layout = WeightLayout::OutIn");
  CHECK_THROWS_WITH(graph.linear(vector, w),
                    "linear: x [512] has rank 1, it takes [..., rows, in]");
  CHECK_THROWS_WITH(graph.linear(x, vector), "linear: weight [512] has rank 1, it takes rank 2");
  const Tensor fits = graph.weight("fits", {64, 768}, DType::Float16);
  CHECK_THROWS_WITH(graph.linear(x, fits, vector),
                    "linear: weight [64, 768] (out, in) gives 64, bias [512] has 512");
  const Tensor wide = graph.weight("wide", {64, 768}, DType::Float32);
  CHECK_THROWS_WITH(graph.linear(x, wide),
                    "linear: x is float16, weight is float32: cast one of them");
  CHECK_THROWS_WITH(graph.linear(ids, w),
                    "linear: x is int32, it takes float16, bfloat16 or float32");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: matmul and elementwise") {
  CHECK_THROWS_WITH(graph.matmul(x, x),
                    "matmul: a [8, 512, 768] has 768 columns, b [8, 512, 768] has 512 rows");
  CHECK_THROWS_WITH(
      graph.matmul(x, x, true, true),
      "matmul: a [8, 512, 768] transposed has 512 columns, b [8, 512, 768] transposed "
      "has 768 rows");
  CHECK_THROWS_WITH(graph.matmul(x, vector), "matmul: b [512] has rank 1, it takes a matrix");
  const Tensor seven = graph.input("seven", {7, 768, 2}, DType::Float16);
  CHECK_THROWS_WITH(
      graph.matmul(x, seven),
      "matmul: leading extents of a [8, 512, 768] and b [7, 768, 2] do not broadcast: "
      "they must be equal or 1");
  CHECK_THROWS_WITH(
      graph.add(x, vector),
      "add: a [8, 512, 768] and b [512] do not broadcast: aligned at the end, extents "
      "must be equal or 1");
  const Tensor a = graph.input("a", {graph.dim("n", 1, 4)}, DType::Float16);
  const Tensor b = graph.input("b", {graph.dim("m", 1, 4)}, DType::Float16);
  CHECK_THROWS_WITH(
      graph.multiply(a, b),
      "multiply: a [n] and b [m] do not broadcast: aligned at the end, extents must be "
      "equal or 1");
  CHECK_THROWS_WITH(graph.relu(ids), "relu: x is int32, it takes float16, bfloat16 or float32");
  CHECK_THROWS_WITH(graph.scale(x, std::numeric_limits<double>::quiet_NaN()),
                    "scale: factor nan is not finite");
  CHECK_THROWS_WITH(graph.shift(x, std::numeric_limits<double>::infinity()),
                    "shift: addend inf is not finite");
  CHECK_THROWS_WITH(graph.cast(x, static_cast<DType>(7)), "cast: unknown dtype 7");
  CHECK_THROWS_WITH(graph.activation(x, static_cast<Activation>(6)), "activation: unknown kind 6");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: norms, reductions, gathers") {
  CHECK_THROWS_WITH(graph.layer_norm(x, vector, {}),
                    "layer_norm: x [8, 512, 768] ends in 768, gamma [512] scales 512");
  CHECK_THROWS_WITH(graph.rms_norm(x, x),
                    "rms_norm: gain [8, 512, 768] has rank 3, it takes rank 1");
  const Tensor gain = graph.weight("gain", {768}, DType::Float16);
  CHECK_THROWS_WITH(graph.rms_norm(x, gain, -1), "rms_norm: epsilon -1 is negative");
  const Tensor scalar = graph.input("scalar", {}, DType::Float16);
  CHECK_THROWS_WITH(graph.softmax(scalar), "softmax: x [] has no last axis");
  CHECK_THROWS_WITH(graph.reduce_sum(x, 3),
                    "reduce_sum: axis 3 is not one of the 3 axes of [8, 512, 768]");
  CHECK_THROWS_WITH(graph.reduce_max(x, -4),
                    "reduce_max: axis -4 is not one of the 3 axes of [8, 512, 768]");
  CHECK_THROWS_WITH(graph.embedding(x, ids),
                    "embedding: table [8, 512, 768] has rank 3, it takes [vocabulary, hidden]");
  const Tensor table = graph.weight("table", {10, 4}, DType::Float16);
  CHECK_THROWS_WITH(graph.embedding(table, x),
                    "embedding: ids is float16, it takes int32 or int64");
  const Tensor empty = graph.weight("empty", {0, 4}, DType::Float16);
  CHECK_THROWS_WITH(graph.embedding(empty, ids), "embedding: table [0, 4] may have no row");
  const Tensor images = graph.input("images", {1, 3, 30, 32}, DType::Float16);
  CHECK_THROWS_WITH(graph.patches(images, 16),
                    "patches: size 16 does not divide 30 of x [1, 3, 30, 32]");
  CHECK_THROWS_WITH(graph.patches(images, 0), "patches: size 0 is below 1");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: rotary") {
  const Tensor q = graph.input("q", {2, 4, 9, 16}, DType::Float16);
  CHECK_THROWS_WITH(
      graph.rotary(q, {.rotary_dim = 7}),
      "rotary: rotary_dim 7 is not an even number from 2 to the head_dim of x [2, 4, 9, "
      "16]");
  CHECK_THROWS_WITH(
      graph.rotary(q, {.rotary_dim = 18}),
      "rotary: rotary_dim 18 is not an even number from 2 to the head_dim of x [2, 4, "
      "9, 16]");
  CHECK_THROWS_WITH(graph.rotary(q, {.theta = 0}), "rotary: theta 0 is not positive");
  CHECK_THROWS_WITH(graph.rotary(q, {.position = -1}),
                    "rotary: position -1 is not in 0 to 2147483647");
  CHECK_THROWS_WITH(graph.rotary(q, {}, ids),
                    "rotary: positions [8] is neither [9] nor [2, 9], as x [2, 4, 9, 16] asks");
  const Tensor row = graph.input("row", {9}, DType::Int32);
  CHECK_THROWS_WITH(graph.rotary(q, {.position = 3}, row),
                    "rotary: it takes positions or position 3, not both");
  CHECK_THROWS_WITH(graph.rotary(x),
                    "rotary: x [8, 512, 768] has rank 3, it takes [batch, heads, seq, head_dim]");
  const Tensor symbolic = graph.input("s", {1, 1, 1, graph.dim("d", 2, 64) * 2}, DType::Float16);
  CHECK_THROWS_WITH(
      graph.rotary(symbolic),
      "rotary: head_dim of x [1, 1, 1, 2 * d] is symbolic, so rotary_dim must be given");
}

TEST_CASE_FIXTURE(Fixture, "builder errors: views and concat") {
  CHECK_THROWS_WITH(graph.reshape(x, {8, 100}),
                    "reshape: x [8, 512, 768] has 3145728 elements, [8, 100] has 800");
  CHECK_THROWS_WITH(graph.reshape(x, {7, -1}),
                    "reshape: 3145728 elements of x [8, 512, 768] do not fill [7, -1]");
  CHECK_THROWS_WITH(graph.reshape(x, {-1, -1}),
                    "reshape: shape [-1, -1] has more than one extent of -1");
  CHECK_THROWS_WITH(graph.transpose(x, {0, 0, 1}),
                    "transpose: (0, 0, 1) is no permutation of the 3 axes of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.transpose(x, {1, 0}),
                    "transpose: (1, 0) is no permutation of the 3 axes of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.slice(x, 1, 500, 13),
                    "slice: 13 entries from 500 on leave axis 1 of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.slice(x, 1, -1, 3),
                    "slice: 3 entries from -1 on leave axis 1 of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.slice(x, 3, 0, 1),
                    "slice: axis 3 is not below the rank 3 of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.broadcast(x, {512, 768}),
                    "broadcast: x [8, 512, 768] does not broadcast to [512, 768]");
  CHECK_THROWS_WITH(graph.concat(std::vector<Tensor>(), 0), "concat: it has 0 inputs, it takes 1");
  CHECK_THROWS_WITH(graph.concat({x, vector}, 0),
                    "concat: parts[1] [512] has rank 1, it takes rank 3");
  const Tensor other = graph.input("other", {8, 512, 8}, DType::Float16);
  CHECK_THROWS_WITH(graph.concat({x, other}, 0),
                    "concat: parts[0] [8, 512, 768] and parts[1] [8, 512, 8] differ in axis 2, not "
                    "only in axis 0");
  CHECK_THROWS_WITH(graph.split_heads(x, 7),
                    "split_heads: 7 heads do not divide the 768 channels of x [8, 512, 768]");
  CHECK_THROWS_WITH(
      graph.merge_heads(x),
      "merge_heads: x [8, 512, 768] has rank 3, it takes [batch, heads, seq, head_dim]");
  CHECK_THROWS_WITH(graph.split_qkv(x, {.heads = 5}),
                    "split_qkv: 5 + 2 * 5 heads do not divide the 768 channels of x [8, 512, 768]");
  CHECK_THROWS_WITH(graph.split_qkv(x, {.heads = 5, .kv_heads = 2}),
                    "split_qkv: 2 kv_heads do not divide 5 heads");
  CHECK_THROWS_WITH(
      graph.split_qkv(x, {.heads = std::numeric_limits<std::int64_t>::max()}),
      "split_qkv: 9223372036854775807 kv_heads do not divide 9223372036854775807 heads");
}

TEST_CASE("builder errors: a failed call leaves the graph as it was") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 4}, DType::Float16);
  const std::string before = graph.dump();
  CHECK_THROWS_AS(graph.reshape(x, {Dim::symbol("n", 1, 4), 4}), GraphError);
  CHECK_THROWS_AS(graph.add(x, Tensor()), GraphError);
  graph.input("m.col_idx", {1}, DType::Int32);
  CHECK_THROWS_AS(graph.mask_input("m", {4, 9}, {.form = MaskForm::Csr}), GraphError);
  CHECK(graph.dump() == before + "%1 input m.col_idx : int32[1]\n");
}

TEST_CASE("builder errors: a graph without outputs is not complete") {
  Graph graph("layer");
  CHECK_THROWS_WITH(graph::check_complete(graph.ir()),
                    "graph layer: it has no output; Graph::output names one");
  graph.output("y", graph.input("x", {1}, DType::Float16));
  CHECK_NOTHROW(graph::check_complete(graph.ir()));
}

}  // namespace
}  // namespace stof
