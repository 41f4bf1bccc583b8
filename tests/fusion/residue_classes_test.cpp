#include "fusion/residue_classes.hpp"

#include <doctest/doctest.h>

#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "mask/layout.hpp"
#include "stof/stof.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

struct Problem {
  Shape shape = Shape({2, 3, 256, 64});
  Mask mask = dilated(40, 40, 2);
  std::int64_t kv_heads = 3;
  bool has_lse = false;
  bool has_score = false;
  bool merges_heads = false;
};

// The attention of a graph after the rewrite.
struct Rewritten {
  graph::Ir ir;

  const graph::Operator& attention() const {
    for (const graph::Operator& op : ir.operators) {
      if (op.kind == graph::OpKind::Attention) {
        return op;
      }
    }
    FAIL("no attention");
    return ir.operators.front();
  }
  Shape query_shape() const { return graph::value_at(ir, attention().inputs[0]).shape; }
  Mask mask() const { return graph::attribute<Mask>(attention(), "mask"); }
};

Rewritten rewritten(const Problem& of) {
  Graph graph("attention");
  const Shape keys({of.shape[0], of.kv_heads, of.shape[2], of.shape[3]});
  const auto q = graph.input("q", of.shape, DType::Float16);
  const auto k = graph.input("k", keys, DType::Float16);
  const auto v = graph.input("v", keys, DType::Float16);
  AttentionOptions options{.mask = of.mask};
  if (of.has_score) {
    options.score = score() + to_float(key_position());
  }
  if (of.has_lse) {
    const AttentionResult result = graph.attention_with_lse(q, k, v, options);
    graph.output("o", result.output);
    graph.output("lse", result.lse);
  } else {
    const auto o = graph.attention(q, k, v, options);
    graph.output("o", of.merges_heads ? graph.merge_heads(o) : o);
  }
  fusion::MaskArraysByMask masks([](const Mask& mask, const mask::Extent& extent) {
    return mask::build_layout(mask, extent);
  });
  return {fusion::with_residue_classes(graph::normalise_but_attention(graph.ir()), masks)};
}

}  // namespace

TEST_CASE("every n-th query and key become an attention of their own") {
  const Rewritten two = rewritten({});
  CHECK(two.query_shape() == Shape({6, 2, 128, 64}));
  const mask::MaskLayout layout =
      mask::build_layout(two.mask(), {.batch = 6, .heads = 2, .q_len = 128, .kv_len = 128});
  CHECK(layout.mask_heads == 2);
  const mask::MaskLayout window =
      mask::build_layout(sliding_window(40, 40), {.q_len = 128, .kv_len = 128});
  CHECK(layout.bitmaps == window.bitmaps);
  CHECK(layout.load.row(1).size() == window.load.row(1).size());
  CHECK(rewritten({.shape = Shape({2, 3, 512, 64}), .mask = dilated(8, 8, 2)}).query_shape() ==
        Shape({6, 2, 256, 64}));  // 20 tiles and not 22, but bands
  CHECK(rewritten({.mask = strided(4)}).query_shape() == Shape({6, 4, 64, 64}));
  CHECK(rewritten({.mask = dilated(40, 40, 2) && causal()}).query_shape() ==
        Shape({6, 2, 128, 64}));
  CHECK(rewritten({.mask = abs(key_position() - query_position()) % 4 == 0 && strided(2)})
            .query_shape() == Shape({6, 4, 64, 64}));
}

TEST_CASE("the values of the graph keep their producers") {
  const Rewritten two = rewritten({});
  for (std::size_t i = 0; i < two.ir.operators.size(); ++i) {
    for (const int output : two.ir.operators[i].outputs) {
      CHECK(graph::value_at(two.ir, output).producer == static_cast<int>(i));
    }
  }
  CHECK(graph::value_at(two.ir, two.ir.outputs[0].value).shape == Shape({2, 3, 256, 64}));
}

TEST_CASE("what is left as it is") {
  const Shape whole({2, 3, 256, 64});
  CHECK(rewritten({.mask = sliding_window(8, 8)}).query_shape() == whole);
  CHECK(rewritten({.mask = dilated(8, 8, 1)}).query_shape() == whole);
  CHECK(rewritten({.mask = strided(2) || causal()}).query_shape() == whole);
  CHECK(rewritten({.mask = (query_position() + key_position()) % 2 == 0}).query_shape() == whole);
  CHECK(rewritten({.mask = strided(2) && head_index() < key_position()}).query_shape() == whole);
  CHECK(rewritten({.mask = strided(3)}).query_shape() == whole);  // 256 / 3
  CHECK(rewritten({.mask = strided((1 << 30) - 1) && strided((1 << 30) - 3)}).query_shape() ==
        whole);
  CHECK(rewritten({.mask = strided(8)}).query_shape() == whole);  // too few each
  const Mask with_first_keys = strided(2) && (dilated(8, 8, 2) || key_position() < 64);
  CHECK(rewritten({.shape = Shape({2, 3, 512, 64}), .mask = with_first_keys}).query_shape() ==
        Shape({2, 3, 512, 64}));  // no bands, and nearly as many tiles
  CHECK(rewritten({.kv_heads = 1}).query_shape() == whole);
  CHECK(rewritten({.has_lse = true}).query_shape() == whole);
  CHECK(rewritten({.has_score = true}).query_shape() == whole);
  // Heads that are merged again lie apart from the batch; alone in it they do not.
  CHECK(rewritten({.merges_heads = true}).query_shape() == whole);
  CHECK(rewritten({.shape = Shape({1, 3, 256, 64}), .merges_heads = true}).query_shape() ==
        Shape({3, 2, 128, 64}));
}
