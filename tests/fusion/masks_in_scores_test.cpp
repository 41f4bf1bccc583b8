// Dense masks that arrive as part of scores.
#include "fusion/masks_in_scores.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "fusion/lowering_testing.hpp"
#include "fusion/prepare.hpp"
#include "fusion/segment_graph.hpp"
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

// With attentions that should take so long with tiles and by scores.
graph::Ir with_scores(const Graph& graph, double tiles_us = 2, double scores_us = 1) {
  return fusion::with_masks_in_scores(graph.ir(), [&](const graph::Ir& of) {
    const bool has_tiles = std::ranges::any_of(of.operators, [](const graph::Operator& op) {
      return op.attributes.contains("mask_form");
    });
    return has_tiles ? tiles_us : scores_us;
  });
}

graph::Operator attention_of(const Problem& of) {
  const graph::Ir ir = with_scores(attention(of));
  return *std::ranges::find(ir.operators, graph::OpKind::Attention, &graph::Operator::kind);
}

std::int64_t in_scores(const graph::Ir& ir) {
  return std::ranges::count_if(ir.operators, [](const graph::Operator& op) {
    return op.kind == graph::OpKind::Attention && !op.attributes.contains("mask_form");
  });
}

bool can_be_part_of_score(const Problem& of) {
  return in_scores(with_scores(attention(of))) == 1;
}

std::string score_of(const Problem& of) {
  return graph::find_attribute<Expr>(attention_of(of), "score")->text();
}

// Whether it is by what the model says of an H200.
bool is_part_of_score(const Problem& of) {
  return testing::lowered_by(attention(of)).program.layouts.empty();
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
  CHECK(op.inputs.size() == 3);
  CHECK(op.captures.size() == 1);
  CHECK(op.attributes.count("like") == 0);
  CHECK(graph::find_attribute<Mask>(op, "mask")->digest() == causal().digest());
}

TEST_CASE("a mask is part of scores where that should be faster") {
  const Graph graph = attention({});
  CHECK(in_scores(with_scores(graph, 2, 1)) == 1);
  CHECK(in_scores(with_scores(graph, 1, 2)) == 0);
  const double never = std::numeric_limits<double>::infinity();
  CHECK(in_scores(with_scores(graph, 2, never)) == 0);
  CHECK(in_scores(with_scores(graph, never, 2)) == 1);
}

TEST_CASE("attentions of one mask, and they alone, are predicted together") {
  Graph graph("attention");
  const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
  const MaskInput a = graph.mask_input("a", {1, 1, 64, 64}, {});
  const MaskInput b = graph.mask_input("b", {1, 1, 64, 64}, {});
  const Tensor x = graph.attention(q, q, q, {.mask_input = a});
  const Tensor y = graph.attention(graph.gelu(x), q, q, {.mask_input = a});
  graph.output("y", graph.attention(y, q, q, {.mask_input = b}));
  std::vector<std::size_t> attentions;
  const graph::Ir ir = fusion::with_masks_in_scores(graph.ir(), [&](const graph::Ir& of) {
    CHECK(std::ranges::all_of(of.operators, [](const graph::Operator& op) {
      return op.kind == graph::OpKind::Attention;
    }));
    attentions.push_back(of.operators.size());
    return of.operators.size() == 2 ? 1.0 : 3.0 - static_cast<double>(attentions.size());
  });
  CHECK(attentions == std::vector<std::size_t>{2, 2, 1, 1});
  CHECK(in_scores(ir) == 1);
}

TEST_CASE("of equal attentions with equal masks one is predicted") {
  Graph graph("attention");
  Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
  for (const char* name : {"a", "b", "c"}) {
    q = graph.gelu(
        graph.attention(q, q, q, {.mask_input = graph.mask_input(name, {1, 1, 64, 64}, {})}));
  }
  graph.output("y", q);
  int predictions = 0;
  const graph::Ir ir = fusion::with_masks_in_scores(
      graph.ir(), [&](const graph::Ir&) { return 2.0 - static_cast<double>(predictions++); });
  CHECK(predictions == 2);
  CHECK(in_scores(ir) == 3);
}

TEST_CASE("attentions of one mask have it in their scores all or none") {
  const auto of_wide = [](const Mask& fixed) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 2, 64, 64}, DType::Float16);
    const Tensor wide = graph.input("wide", {1, 2, 64, 64}, DType::Float32);
    const MaskInput mask = graph.mask_input("m", {1, 1, 64, 64}, {});
    graph.output("x", graph.attention(q, q, q, {.mask_input = mask}));
    graph.output("y", graph.attention(wide, wide, wide, {.mask = fixed, .mask_input = mask}));
    return in_scores(with_scores(graph));
  };
  CHECK(of_wide(Mask()) == 0);
  CHECK(of_wide(causal()) == 1);  // beside another fixed mask, it is another mask
}

TEST_CASE("few tiles are faster by scores, and fewer where they serve several attentions") {
  CHECK(is_part_of_score({.length = 768}));
  CHECK(is_part_of_score({.batch = 8, .heads = 8, .length = 208}));
  CHECK_FALSE(is_part_of_score({.length = 2048}));
  CHECK_FALSE(is_part_of_score({.batch = 16, .length = 512}));
  CHECK_FALSE(is_part_of_score({.length = 768, .attentions = 12}));
  CHECK(is_part_of_score({.length = 128, .attentions = 12}));
}

TEST_CASE("what a mask should be like counts") {
  const MaskInputOptions window = {.like = sliding_window(32, 32)};
  CHECK(is_part_of_score({.batch = 2, .length = 1024, .queries = 256}));
  CHECK_FALSE(is_part_of_score({.batch = 2, .length = 1024, .queries = 256, .input = window}));
}

TEST_CASE("masks of a few queries of many keys are part of the score") {
  for (const std::int64_t queries : {1, 4, 8, 32}) {
    CAPTURE(queries);
    CHECK(is_part_of_score({.heads = 32, .length = 4096, .head_dim = 128, .queries = queries}));
  }
}

TEST_CASE("a graph that is prepared, or a segment of it, stays as it is") {
  const Graph graph = attention({.length = 768, .attentions = 12});
  fusion::MaskArraysByMask masks;
  const base::DeviceProfile device = base::shipped_profile("h200");
  const auto prepare = [&](const graph::Ir& ir) {
    return fusion::prepare(ir, testing::shipped_templates(), device, masks);
  };
  const graph::Ir once = prepare(graph::normalise_but_attention(graph.ir()));
  CHECK(in_scores(once) == 0);
  CHECK(in_scores(prepare(once)) == 0);
  const graph::Ir segment = fusion::segment_graph(once, std::array{0});
  REQUIRE(in_scores(prepare(segment)) == 1);  // alone it would be otherwise
  const auto lowered = fusion::lower(segment, testing::shipped_templates(), device, {},
                                     {.scheme = {}, .settings = {}, .is_prepared = true});
  CHECK(lowered.program.layouts.size() == 1);
}

TEST_CASE("a bound on tiles, other forms and what reads tensors keep their layouts") {
  CHECK(can_be_part_of_score({.length = 16384}));
  CHECK_FALSE(can_be_part_of_score({.length = 16385}));
  CHECK_FALSE(can_be_part_of_score({.input = {.max_part_tiles = 5}}));
  CHECK_FALSE(can_be_part_of_score({.fixed = sliding_window(20, 0)}));
  CHECK_FALSE(can_be_part_of_score({.dtype = DType::Float32}));
  const Table table("mask", std::vector<double>(128, 0.5));
  CHECK_FALSE(can_be_part_of_score({.score = score() + table[key_position()]}));
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
  const graph::Ir ir = with_scores(graph);
  for (const graph::Operator& op : ir.operators) {
    CHECK((op.kind != graph::OpKind::Attention || op.attributes.contains("mask_form")));
  }
}
