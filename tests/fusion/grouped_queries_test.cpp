#include "fusion/grouped_queries.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "mask/evaluate.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

struct Problem {
  Shape queries = Shape({2, 8, 1, 64});
  std::int64_t kv_heads = 2;
  Mask mask = Mask();
  bool has_lse = false;
  bool has_lengths = false;   // numbers of keys
  bool splits_heads = false;  // queries are [batch, q_len, heads, width] in memory
};

graph::Ir grouped(const Problem& of) {
  Graph graph("attention");
  const Shape& shape = of.queries;
  const Shape keys({shape[0], of.kv_heads, 200, shape[3]});
  auto q =
      graph.input("q", of.splits_heads ? Shape({shape[0], shape[2], shape[1], shape[3]}) : shape,
                  DType::Float16);
  if (of.splits_heads) {
    q = graph.transpose(q, {0, 2, 1, 3});
  }
  const auto k = graph.input("k", keys, DType::Float16);
  const auto v = graph.input("v", keys, DType::Float16);
  if (of.has_lse) {
    const AttentionResult result = graph.attention_with_lse(q, k, v, {.mask = of.mask});
    graph.output("o", result.output);
    graph.output("lse", result.lse);
  } else if (of.has_lengths) {
    const auto lengths = graph.input("lengths", {shape[0]}, DType::Int32);
    graph.output("o", graph.attention(q, k, v, {.mask = of.mask, .kv_lengths = lengths}));
  } else {
    graph.output("o", graph.attention(q, k, v, {.mask = of.mask}));
  }
  return fusion::with_grouped_queries(graph::normalise_but_attention(graph.ir()));
}

const graph::Operator& attention_of(const graph::Ir& ir) {
  const auto found = std::ranges::find(ir.operators, graph::OpKind::Attention,
                                       [](const graph::Operator& op) { return op.kind; });
  REQUIRE(found != ir.operators.end());
  return *found;
}

Shape rows_of(const Problem& of) {
  const graph::Ir ir = grouped(of);
  const graph::Operator& op = attention_of(ir);
  CHECK(graph::value_at(ir, ir.outputs[0].value).shape == of.queries);
  return graph::value_at(ir, op.inputs[0]).shape;
}

}  // namespace

TEST_CASE("queries of heads that share a key head become rows") {
  CHECK(rows_of({}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 16, 64})}) == Shape({2, 2, 64, 64}));
  CHECK(rows_of({.mask = causal()}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.splits_heads = true}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.has_lengths = true}) == Shape({2, 2, 4, 64}));
}

TEST_CASE("a row sees what its query saw") {
  for (const std::int64_t q_len : {1, 3}) {
    const Mask mask =
        sliding_window(70, 3) || (query_length() - query_position()) * 60 < key_position();
    const graph::Ir ir = grouped({.queries = Shape({2, 8, q_len, 64}), .mask = mask});
    mask::Evaluator was(mask, {.q_len = q_len, .kv_len = 200});
    mask::Evaluator is(graph::attribute<Mask>(attention_of(ir), "mask"),
                       {.q_len = 4 * q_len, .kv_len = 200});
    for (std::int64_t row = 0; row < 4 * q_len; ++row) {
      for (std::int64_t key = 0; key < 200; ++key) {
        CHECK(is.at({.query = row}, key) == was.at({.query = row % q_len}, key));
      }
    }
  }
}

TEST_CASE("what is left as it is") {
  const Shape whole({2, 8, 1, 64});
  CHECK(rows_of({.kv_heads = 8}) == whole);
  CHECK(rows_of({.mask = head_index() * 10 < key_position()}) == whole);
  CHECK(rows_of({.has_lse = true}) == whole);
  CHECK(rows_of({.queries = Shape({2, 8, 17, 64})}) == Shape({2, 8, 17, 64}));  // 68 rows
  // Rows of a group lie further apart than those of a head.
  CHECK(rows_of({.queries = Shape({2, 8, 2, 64}), .splits_heads = true}) == Shape({2, 8, 2, 64}));
}
