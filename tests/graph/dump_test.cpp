#include <string>

#include <doctest/doctest.h>

#include "graph/normalise.hpp"
#include "layers.hpp"
#include "stof/graph.hpp"

namespace stof::graph {
namespace {

TEST_CASE("dump: one line an operator") {
  Graph graph("tiny");
  const Dim seq = graph.dim("seq", 1, 64);
  const Tensor x = graph.input("x", {2, seq, 8}, DType::Float16);
  const Tensor w = graph.weight("w", {8, 24}, DType::Float16, {.layout = WeightLayout::InOut});
  const Tensor slope = graph.weight("slope", {2}, DType::Float32);
  const QkvHeads heads = graph.split_qkv(graph.linear(x, w), {.heads = 2});
  const AttentionResult result = graph.attention_with_lse(
      heads.q, heads.k, heads.v,
      {.mask = causal(), .score = score() * graph.capture(slope)(head_index()), .scale = 0.5});
  graph.output("y", graph.merge_heads(result.output));
  CHECK(graph.dump() == R"(graph tiny
dim seq in [1, 64]
%0 input x : float16[2, seq, 8]
%1 weight w : float16[8, 24] (in, out)
%2 weight slope : float32[2]
%3 linear(%0, %1) : float16[2, seq, 24]
%4 slice(%3; axis=2, start=0, length=8) : float16[2, seq, 8]
%5 reshape(%4; shape=[2, seq, 2, 4]) : float16[2, seq, 2, 4]
%6 transpose(%5; permutation=(0, 2, 1, 3)) : float16[2, 2, seq, 4]
%7 slice(%3; axis=2, start=8, length=8) : float16[2, seq, 8]
%8 reshape(%7; shape=[2, seq, 2, 4]) : float16[2, seq, 2, 4]
%9 transpose(%8; permutation=(0, 2, 1, 3)) : float16[2, 2, seq, 4]
%10 slice(%3; axis=2, start=16, length=8) : float16[2, seq, 8]
%11 reshape(%10; shape=[2, seq, 2, 4]) : float16[2, seq, 2, 4]
%12 transpose(%11; permutation=(0, 2, 1, 3)) : float16[2, 2, seq, 4]
%13, %14 attention(%6, %9, %12; scale=0.5, score=score * slope[head], mask=k_pos <= q_pos, slope=%2) : float16[2, 2, seq, 4], float32[2, 2, seq]
%15 transpose(%13; permutation=(0, 2, 1, 3)) : float16[2, seq, 2, 4]
%16 reshape(%15; shape=[2, seq, 8]) : float16[2, seq, 8]
output y = %16
)");
}

TEST_CASE("dump: flags that are off and absent inputs") {
  Graph graph("g");
  const Tensor x = graph.input("x", {1, 1, 8, 8}, DType::Float32);
  const MaskInput mask = graph.mask_input("m", {1}, {.form = MaskForm::KeyLengths});
  graph.output("y", graph.attention(graph.matmul(x, x, false, true), x, x, {.mask_input = mask}));
  const std::string text = graph.dump();
  CHECK(text.find("%2 matmul(%0, %0; transpose_b=true) : float32[1, 1, 8, 8]\n") !=
        std::string::npos);
  CHECK(text.find("%3 attention(%2, %0, %0, -, %1; ") != std::string::npos);
  const std::string primitive = Graph(normalise(graph.ir())).dump();
  CHECK(primitive.find("softmax(%5) : float32[1, 1, 8, 8]  # segment 0\n") != std::string::npos);
}

}  // namespace
}  // namespace stof::graph
