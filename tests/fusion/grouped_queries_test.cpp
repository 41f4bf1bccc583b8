#include "fusion/grouped_queries.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "expr/evaluate.hpp"
#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "mask/evaluate.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

struct Problem {
  Shape queries = Shape({2, 8, 1, 64});
  std::int64_t kv_heads = 2;
  std::int64_t kv_len = 200;
  Mask mask = Mask();
  bool has_lse = false;
  bool has_lengths = false;   // numbers of keys
  bool splits_heads = false;  // queries are [batch, q_len, heads, width] in memory
};

graph::Ir grouped(const Problem& of) {
  Graph graph("attention");
  const Shape& shape = of.queries;
  const Shape keys({shape[0], of.kv_heads, of.kv_len, shape[3]});
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
  fusion::MaskArraysByMask masks;
  return fusion::with_grouped_queries(graph::normalise_but_attention(graph.ir()), masks);
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
  if (of.has_lse) {
    const Shape& shape = of.queries;
    CHECK(graph::value_at(ir, ir.outputs[1].value).shape == Shape({shape[0], shape[1], shape[2]}));
    CHECK(graph::value_at(ir, op.outputs[1]).shape ==
          Shape({shape[0], of.kv_heads, shape[1].value() / of.kv_heads * shape[2].value()}));
  }
  return graph::value_at(ir, op.inputs[0]).shape;
}

}  // namespace

TEST_CASE("queries of heads that share a key head become rows") {
  CHECK(rows_of({}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 16, 64})}) == Shape({2, 2, 64, 64}));
  CHECK(rows_of({.mask = causal()}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.splits_heads = true}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.has_lengths = true}) == Shape({2, 2, 4, 64}));
  CHECK(rows_of({.has_lse = true}) == Shape({2, 2, 4, 64}));
}

TEST_CASE("of many keys more rows than a tile holds, where tiles are half as many then") {
  const std::int64_t many = 4096;
  CHECK(rows_of({.queries = Shape({2, 8, 17, 64}), .kv_len = many}) == Shape({2, 2, 68, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 32, 64}), .kv_len = many}) == Shape({2, 2, 128, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 32, 64}), .kv_len = many - 64}) == Shape({2, 8, 32, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 33, 64}), .kv_len = many}) == Shape({2, 8, 33, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 32, 136}), .kv_len = many}) == Shape({2, 8, 32, 136}));
  const Mask half = key_position() < 2048;  // is seen
  CHECK(rows_of({.queries = Shape({2, 8, 32, 64}), .kv_len = many, .mask = half}) ==
        Shape({2, 8, 32, 64}));
  CHECK(rows_of({.queries = Shape({2, 8, 32, 64}), .kv_len = 2 * many, .mask = half}) ==
        Shape({2, 8, 32, 64}));
  CHECK(rows_of({.queries = Shape({4, 8, 32, 64}), .kv_len = many, .mask = half}) ==
        Shape({4, 2, 128, 64}));
}

TEST_CASE("queries are copied where keys and values are many bytes, and many to a row") {
  const Shape queries({4, 32, 16, 128});
  const Problem copied = {.queries = queries, .kv_heads = 8, .kv_len = 4096, .splits_heads = true};
  CHECK(rows_of(copied) == Shape({4, 8, 64, 128}));
  Problem other = copied;
  other.kv_len = 4032;
  CHECK(rows_of(other) == queries);
  other = copied;
  other.mask = sliding_window(1000, 1000);
  CHECK(rows_of(other) == queries);
  other = copied;
  other.queries = Shape({128, 32, 16, 128});
  other.kv_len = 255;
  CHECK(rows_of(other) == other.queries);
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

TEST_CASE("the score of a row is that of its head and query") {
  const Score score_of_query =
      score() + 100 * head_index() + 10 * query_position() + key_position() / query_length();
  for (const std::int64_t q_len : {1, 3}) {
    Graph graph("attention");
    const Tensor q = graph.input("q", {1, 8, q_len, 64}, DType::Float16);
    const Tensor k = graph.input("k", {1, 2, 200, 64}, DType::Float16);
    graph.output("o", graph.attention(q, k, k, {.score = score_of_query}));
    fusion::MaskArraysByMask masks;
    const graph::Ir ir =
        fusion::with_grouped_queries(graph::normalise_but_attention(graph.ir()), masks);
    const auto& of_rows = graph::attribute<Expr>(attention_of(ir), "score");
    for (std::int64_t head = 0; head < 8; ++head) {
      for (std::int64_t query = 0; query < q_len; ++query) {
        expr::Bindings was = {{"head", head}, {"q_pos", query}, {"q_len", q_len}};
        expr::Bindings is = {
            {"head", head / 4}, {"q_pos", head % 4 * q_len + query}, {"q_len", 4 * q_len}};
        for (expr::Bindings* values : {&was, &is}) {
          values->insert({{"score", 0.5}, {"k_pos", std::int64_t{41}}});
        }
        CHECK(expr::evaluate(of_rows, is) == expr::evaluate(score_of_query, was));
      }
    }
  }
}

TEST_CASE("what is left as it is") {
  const Shape whole({2, 8, 1, 64});
  CHECK(rows_of({.kv_heads = 8}) == whole);
  CHECK(rows_of({.mask = head_index() * 10 < key_position()}) == whole);
  CHECK(rows_of({.queries = Shape({2, 8, 17, 64})}) == Shape({2, 8, 17, 64}));  // 68 rows
  // Rows of a group lie further apart than those of a head.
  CHECK(rows_of({.queries = Shape({2, 8, 2, 64}), .splits_heads = true}) == Shape({2, 8, 2, 64}));
}
