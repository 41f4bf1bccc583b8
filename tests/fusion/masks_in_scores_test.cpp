// Dense masks that arrive as part of scores.
#include "fusion/masks_in_scores.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "fusion/lowering_testing.hpp"
#include "graph/op_info.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

struct Problem {
  std::int64_t batch = 1, heads = 12, length = 128, head_dim = 64;
  std::int64_t queries = 0;  // as many as keys
  std::int64_t mask_batch = 1, mask_heads = 1;
  int attentions = 1;
  MaskInputOptions input = {};
  std::optional<Score> score = {};
  Mask fixed = {};
  DType dtype = DType::Float16;
};

Graph attention(const Problem& of) {
  Graph graph("attention");
  const std::int64_t queries = of.queries == 0 ? of.length : of.queries;
  Tensor q = graph.input("q", {of.batch, of.heads, queries, of.head_dim}, of.dtype);
  const Tensor k = graph.input("k", {of.batch, of.heads, of.length, of.head_dim}, of.dtype);
  const MaskInput mask =
      graph.mask_input("m", {of.mask_batch, of.mask_heads, queries, of.length}, of.input);
  for (int i = 0; i < of.attentions; ++i) {
    q = graph.attention(q, k, k, {.mask = of.fixed, .mask_input = mask, .score = of.score});
  }
  graph.output("y", q);
  return graph;
}

graph::Operator attention_of(const Problem& of) {
  const graph::Ir ir = fusion::with_masks_in_scores(attention(of).ir());
  return *std::ranges::find(ir.operators, graph::OpKind::Attention, &graph::Operator::kind);
}

bool is_part_of_score(const Problem& of) {
  return attention_of(of).attributes.count("mask_form") == 0;
}

std::string score_of(const Problem& of) {
  return graph::find_attribute<Expr>(attention_of(of), "score")->text();
}

}  // namespace

TEST_CASE("a small dense mask is part of the score, and no layout is built") {
  const kernel::Program program = testing::lowered_by(attention({})).program;
  CHECK(program.layouts.empty());
  CHECK(program.launches.size() == 1);
  CHECK(program.kernels.at(0) == "attention_band_sm90");
}

TEST_CASE("what is not seen has a score of minus infinity") {
  CHECK(score_of({}) == "mask[0, 0, q_pos, k_pos] ? score : -inf");
  CHECK(score_of({.batch = 2, .mask_batch = 2}) == "mask[batch, 0, q_pos, k_pos] ? score : -inf");
  CHECK(score_of({.mask_heads = 12, .score = score() * 2.0}) ==
        "mask[0, head, q_pos, k_pos] ? score * 2.0 : -inf");
  const graph::Operator op = attention_of({.input = {.like = causal()}, .fixed = causal()});
  CHECK(op.inputs.size() == 4);
  CHECK(op.captures.size() == 1);
  CHECK(op.attributes.count("like") == 0);
  CHECK(graph::find_attribute<Mask>(op, "mask")->digest() == causal().digest());
}

TEST_CASE("of many tiles a mask keeps its layout, and of fewer where it serves several") {
  CHECK(is_part_of_score({.length = 1024}));
  CHECK(is_part_of_score({.batch = 4, .length = 512}));
  CHECK_FALSE(is_part_of_score({.length = 1025}));
  CHECK_FALSE(is_part_of_score({.batch = 8, .length = 512}));
  CHECK_FALSE(is_part_of_score({.batch = 4, .length = 512, .head_dim = 128}));
  CHECK_FALSE(is_part_of_score({.batch = 4, .length = 512, .attentions = 2}));
  CHECK(is_part_of_score({.length = 512, .attentions = 2}));
}

TEST_CASE("attentions of one mask have it in their scores all or none") {
  const auto in_scores = [](const Mask& fixed) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
    const Tensor wide = graph.input("wide", {1, 2, 64, 64}, DType::Float32);
    const MaskInput mask = graph.mask_input("m", {1, 1, 64, 64}, {});
    graph.output("x", graph.attention(q, q, q, {.mask_input = mask}));
    graph.output("y", graph.attention(wide, wide, wide, {.mask = fixed, .mask_input = mask}));
    const graph::Ir ir = fusion::with_masks_in_scores(graph.ir());
    return std::ranges::count_if(ir.operators, [](const graph::Operator& op) {
      return op.kind == graph::OpKind::Attention && !op.attributes.contains("mask_form");
    });
  };
  CHECK(in_scores(Mask()) == 0);
  CHECK(in_scores(causal()) == 1);  // beside another fixed mask, it is another mask
}

TEST_CASE("masks of a few queries are part of the score, however many keys there are") {
  CHECK(is_part_of_score({.batch = 64, .length = 30000, .queries = 4, .attentions = 32}));
  CHECK_FALSE(is_part_of_score({.batch = 64, .length = 30000, .queries = 5}));
}

TEST_CASE("a last row that all tiles would copy again and again is left to tiles of a layout") {
  CHECK(is_part_of_score({.batch = 8, .heads = 8, .length = 192}));
  CHECK_FALSE(is_part_of_score({.batch = 8, .heads = 8, .length = 208}));
  CHECK(is_part_of_score({.batch = 4, .heads = 8, .length = 208}));
  CHECK(is_part_of_score({.batch = 8, .heads = 8, .length = 208, .mask_batch = 8}));
  CHECK(is_part_of_score({.batch = 8, .heads = 8, .length = 197}));  // read, not copied
  CHECK_FALSE(is_part_of_score({.batch = 16, .length = 1024, .queries = 1}));
  CHECK(is_part_of_score({.batch = 8, .length = 1024, .queries = 1}));
}

TEST_CASE("a bound on tiles, other forms and what reads tensors keep their layouts") {
  CHECK_FALSE(is_part_of_score({.input = {.max_part_tiles = 5}}));
  CHECK_FALSE(is_part_of_score({.fixed = sliding_window(20, 0)}));
  CHECK_FALSE(is_part_of_score({.dtype = DType::Float32}));
  const Table table("mask", std::vector<double>(128, 0.5));
  CHECK_FALSE(is_part_of_score({.score = score() + table[key_position()]}));
  Graph graph("attention");
  const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
  const Capture bias = graph.capture(graph.input("bias", {2, 64, 64}, DType::Float16));
  const MaskInput dense = graph.mask_input("m", {1, 1, 64, 64}, {});
  const MaskInput columns = graph.mask_input("c", {64, 900}, {.form = MaskForm::Csr});
  graph.output("x", graph.attention(q, q, q, {.mask_input = columns}));
  graph.output("y", graph.attention(
                        q, q, q,
                        {.mask_input = dense,
                         .score = score() + bias(head_index(), query_position(), key_position())}));
  const graph::Ir ir = fusion::with_masks_in_scores(graph.ir());
  for (const graph::Operator& op : ir.operators) {
    CHECK((op.kind != graph::OpKind::Attention || op.attributes.contains("mask_form")));
  }
}
