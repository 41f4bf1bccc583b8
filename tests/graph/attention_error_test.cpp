#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "stof/error.hpp"
#include "stof/graph.hpp"

namespace stof {
namespace {

struct Fixture {
  Graph graph;
  Tensor q = graph.input("q", {2, 12, 128, 64}, DType::Float16);
  Tensor k = graph.input("k", {2, 4, 100, 64}, DType::Float16);

  Tensor like_k(const std::string& name, const Shape& shape, DType dtype = DType::Float16) {
    return graph.input(name, shape, dtype);
  }
};

TEST_CASE_FIXTURE(Fixture, "attention errors: shapes of q, k and v") {
  const Tensor flat = like_k("flat", {2, 100, 64});
  CHECK_THROWS_WITH(
      graph.attention(flat, k, k),
      "attention: q [2, 100, 64] has rank 3, it takes [batch, heads, q_len, head_dim]");
  CHECK_THROWS_WITH(graph.attention(q, k, flat),
                    "attention: v [2, 100, 64] has rank 3, it takes [batch, kv_heads, kv_len, "
                    "value_dim]");
  CHECK_THROWS_WITH(graph.attention(q, like_k("a", {3, 4, 100, 64}), k),
                    "attention: batch of q [2, 12, 128, 64] is 2, that of k [3, 4, 100, 64] is 3");
  CHECK_THROWS_WITH(
      graph.attention(q, k, like_k("b", {2, 2, 100, 64})),
      "attention: kv_heads of k [2, 4, 100, 64] is 4, that of v [2, 2, 100, 64] is 2");
  CHECK_THROWS_WITH(
      graph.attention(q, k, like_k("c", {2, 4, 99, 64})),
      "attention: kv_len of k [2, 4, 100, 64] is 100, that of v [2, 4, 99, 64] is 99");
  CHECK_THROWS_WITH(
      graph.attention(q, like_k("d", {2, 4, 100, 32}), k),
      "attention: head_dim of q [2, 12, 128, 64] is 64, that of k [2, 4, 100, 32] is 32");
  const Tensor five = like_k("five", {2, 5, 100, 64});
  CHECK_THROWS_WITH(
      graph.attention(q, five, five),
      "attention: 5 heads of k [2, 5, 100, 64] do not divide 12 heads of q [2, 12, 128, "
      "64]");
  CHECK_THROWS_WITH(graph.attention(q, k, like_k("e", {2, 4, 100, 64}, DType::Float32)),
                    "attention: q is float16, v is float32: cast one of them");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: scale") {
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.scale = std::numeric_limits<double>::infinity()}),
                    "attention: scale inf is not finite");
  const Tensor s = like_k("s", {2, 4, 100, graph.dim("d", 1, 8)});
  CHECK_THROWS_WITH(graph.attention(s, s, s),
                    "attention: head_dim of q [2, 4, 100, d] is symbolic, so scale must be given");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: masks of data for other lengths") {
  HostTensor keep(DType::Bool, {128, 64});
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.mask = Mask::dense(keep.view())}),
                    "attention: mask: data of 128 queries and 64 keys for an attention of 128 "
                    "and 100");
  const Tensor s = like_k("s", {2, 4, graph.dim("seq", 1, 256), 64});
  HostTensor square(DType::Bool, {128, 128});
  square.set(0, 1);
  CHECK_THROWS_WITH(
      graph.attention(s, s, s, {.mask = Mask::dense(square.view())}),
      "attention: mask dense[128, 128] is for q_len 128 and kv_len 128, which are seq "
      "and seq");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: masks that hide everything") {
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.mask = false}),
                    "attention: the mask false shows no key to any query for q_len 128 and kv_len "
                    "100");
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.mask = key_position() >= 100}),
                    "attention: the mask k_pos >= 100 shows no key to any query for q_len 128 and "
                    "kv_len 100");
  HostTensor keep(DType::Bool, {128, 100});
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.mask = Mask::dense(keep.view())}),
      "attention: the mask dense[128, 100] shows no key to any query for q_len 128 and "
      "kv_len 100");
  keep.set(12799, 1);
  CHECK_NOTHROW(graph.attention(q, k, k, {.mask = Mask::dense(keep.view())}));
}

TEST_CASE_FIXTURE(Fixture, "attention errors: names in masks and scores") {
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.mask = Expr::scalar("row") < 3}),
                    "mask: no scalar row; masks have batch, head, q_pos, k_pos, q_len and kv_len");
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.score = score() * Expr::scalar("gain", ScalarType::Float)}),
      "attention: the score reads gain, it knows batch, head, k_pos, kv_len, q_len, "
      "q_pos, score");
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.score = to_float(Expr::scalar("q_pos", ScalarType::Float))}),
      "attention: the score reads q_pos as float, it is int");
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.score = key_position()}),
                    "attention: score k_pos is of type int, it takes a float");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: captures") {
  Graph other;
  const Capture far = other.capture(other.input("far", {4}, DType::Int32));
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.mask = far(batch_index()) > key_position()}),
      "attention: the mask captures far, which Graph::capture of this graph did not make");
  const Tensor slope = graph.weight("slope", {12}, DType::Float16);
  graph.capture(slope);
  const Capture wrong("slope", DType::Float32, 2);
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.score = score() + wrong(head_index(), key_position())}),
      "attention: the score captures slope as float32 of rank 2, it is float16 [12]");
  CHECK_THROWS_WITH(graph.capture(k, "slope"),
                    "capture: slope is the name of another captured tensor, slope");
  CHECK_THROWS_WITH(graph.capture(Tensor()), "capture: value is an empty handle");
  const Tensor scalar = graph.input("scalar", {}, DType::Float16);
  CHECK_THROWS_WITH(graph.capture(scalar),
                    "expression: capture scalar has rank 0, which is not 1 to 4");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: kv_lengths") {
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.kv_lengths = like_k("l", {2}, DType::Int64)}),
                    "attention: kv_lengths is int64, it takes int32");
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.kv_lengths = like_k("m", {3}, DType::Int32)}),
                    "attention: kv_lengths 'm' [3] is not [2]");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: run-time masks") {
  const auto attend = [&](const MaskInput& mask) {
    graph.attention(q, k, k, {.mask_input = mask});
  };
  CHECK_THROWS_WITH(attend({}), "attention: mask_input has 0 tensors, dense takes 1");
  CHECK_THROWS_WITH(
      attend({.form = MaskForm::KeyLengths, .tensors = {like_k("a", {3}, DType::Int32)}}),
      "attention: mask_data 'a' [3] is not [2]");
  CHECK_THROWS_WITH(
      attend({.form = MaskForm::CuSeqlens, .tensors = {like_k("b", {1}, DType::Int32)}}),
      "attention: mask_data [1] may hold fewer than 2 offsets");
  CHECK_THROWS_WITH(
      attend({.form = MaskForm::Dense, .tensors = {like_k("c", {128, 100}, DType::Bool)}}),
      "attention: mask_data [128, 100] has rank 2, it takes [batch or 1, heads or 1, "
      "q_len, kv_len]");
  CHECK_THROWS_WITH(
      attend({.form = MaskForm::Dense, .tensors = {like_k("d", {2, 4, 128, 100}, DType::Bool)}}),
      "attention: mask_data 'd' [2, 4, 128, 100] is not [2, 12, 128, 100]");
  CHECK_THROWS_WITH(attend(graph.mask_input("e", {100, 7}, {.form = MaskForm::Csr})),
                    "attention: mask_data 'e.row_ptr' [101] is not [129]");
  MaskInput negative = graph.mask_input("f", {128, 7}, {.form = MaskForm::Csr});
  negative.max_part_tiles = -1;
  CHECK_THROWS_WITH(attend(negative), "attention: max_part_tiles -1 is negative");
  const Capture keep = graph.capture(like_k("keep", {2, 100}, DType::Bool));
  CHECK_THROWS_WITH(
      attend(graph.mask_input("h", {2}, {.form = MaskForm::KeyLengths, .like = key_padding(keep)})),
      "attention: like keep[batch, k_pos] reads tensors of the graph");
}

TEST_CASE_FIXTURE(Fixture, "attention errors: mask inputs by themselves") {
  const auto shape_error = [&](const Shape& shape, MaskForm form) {
    CHECK_THROWS_WITH_AS(graph.mask_input("m", shape, {.form = form}),
                         doctest::Contains("mask_input m: shape "), GraphError);
  };
  shape_error({2}, MaskForm::Dense);
  shape_error({2, 2}, MaskForm::KeyLengths);
  shape_error({1}, MaskForm::CuSeqlens);
  CHECK_THROWS_WITH(graph.mask_input("g", {128}, {.form = MaskForm::Csr}),
                    "mask_input g: shape [128] of form csr has rank 1, it takes [q_len, n]");
  CHECK_THROWS_WITH(graph.mask_input("f", {128, 7}, {.form = MaskForm::Csr, .max_part_tiles = -1}),
                    "mask_input f: max_part_tiles -1 is negative");
  CHECK_THROWS_WITH_AS(graph.mask_input("e", {4}, {.form = static_cast<MaskForm>(9)}),
                       "unknown mask form 9", GraphError);
}

TEST_CASE_FIXTURE(Fixture, "attention errors: tables and captures with too few entries") {
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.mask = documents({0, 1})}),
                    "attention: mask: documents end at 1, but q_len is 128");
  const Table slope("slope", std::vector<double>{0.5, 0.25});
  CHECK_THROWS_WITH(graph.attention(q, k, k, {.score = score() + slope[head_index()]}),
                    "attention: score: table slope has 2 entries, but heads is 12");
  const Capture turned = graph.capture(like_k("turned", {100, 2}, DType::Bool));
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.mask = key_padding(turned)}),
      "attention: the mask reads turned[batch, k_pos], but axis 1 of [100, 2] has 2 entries "
      "and kv_len is 100");
  const Capture bias = graph.capture(like_k("bias", {11}, DType::Float32));
  CHECK_THROWS_WITH(
      graph.attention(q, k, k, {.score = score() + bias(head_index())}),
      "attention: the score reads bias[head], but axis 0 of [11] has 11 entries and heads is 12");
  const Table shared("shared", std::vector<double>{0.5});
  CHECK_NOTHROW(graph.attention(q, k, k, {.score = score() + shared[head_index()]}));
}

TEST_CASE("attention errors: without queries or keys there is nothing to mask") {
  Graph graph;
  const Tensor none = graph.input("none", {1, 1, 0, 8}, DType::Float32);
  CHECK_NOTHROW(graph.attention(none, none, none, {.mask = causal()}));
}

}  // namespace
}  // namespace stof
