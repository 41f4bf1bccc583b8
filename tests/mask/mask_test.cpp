#include "stof/mask.hpp"

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;

namespace {

const Expr kQ = query_position();
const Expr kK = key_position();

TensorView bytes_view(std::vector<std::uint8_t>& values, std::vector<std::int64_t> shape) {
  return {.data = values.data(), .dtype = DType::UInt8, .shape = std::move(shape), .strides = {}};
}

Mask some_data(std::int64_t q_len = 3, std::int64_t kv_len = 5) {
  std::vector<std::uint8_t> values(q_len * kv_len);
  values[1] = 1;
  return Mask::dense(bytes_view(values, {q_len, kv_len}));
}

}  // namespace

TEST_CASE("a mask without conditions is full") {
  CHECK(Mask().is_full());
  CHECK(Mask(true).is_full());
  CHECK_FALSE(Mask(false).is_full());
  CHECK_FALSE(causal().is_full());
  CHECK_FALSE(some_data().is_full());
  CHECK((Mask() || causal()).is_full());
  CHECK((!Mask(false)).is_full());
}

TEST_CASE("masks and scores come from text") {
  const Mask window = parse_expression("k_pos <= q_pos && q_pos - k_pos < 1024", mask_names());
  CHECK(window.digest() == Mask(kK <= kQ && kQ - kK < 1024).digest());
  const Expr all = batch_index() + head_index() + kQ + kK + query_length() + key_length();
  CHECK(Mask(parse_expression((all > 0).text(), mask_names())).digest() == Mask(all > 0).digest());
  CHECK(parse_expression((score() * all).text(), score_names()).text() == (score() * all).text());
  CHECK_THROWS_AS(parse_expression("score > 0.0", mask_names()), ExpressionError);

  ExprNames names = score_names();
  names.tables.emplace("slope", Table("slope", std::vector<double>{0.5, 0.25}));
  CHECK(parse_expression("score + slope[head] * (k_pos - q_pos)", names).type() ==
        ScalarType::Float);
}

TEST_CASE("expressions fold into one expression") {
  const Mask both = causal() && Mask(kQ - kK < 1024);
  CHECK(both.is_expression());
  CHECK(both.text() == (kK <= kQ && kQ - kK < 1024).text());
  CHECK(both.digest() == Mask(kK <= kQ && kQ - kK < 1024).digest());
  CHECK((!causal()).text() == (!(kK <= kQ)).text());
  CHECK((causal() | strided(3)).text() == (kK <= kQ || (kQ - kK) % 3 == 0).text());
}

TEST_CASE("constants vanish in combinations") {
  const Mask data = some_data();
  CHECK((Mask() && data).digest() == data.digest());
  CHECK((data && Mask(true)).digest() == data.digest());
  CHECK((data || Mask(false)).digest() == data.digest());
  CHECK((data && Mask(false)).digest() == Mask(false).digest());
  CHECK((data || Mask()).is_full());
}

TEST_CASE("text tells the form and shape of data") {
  const Mask data = some_data();
  CHECK(data.text() == "dense[3, 5]");
  CHECK((data & causal()).text() == "dense[3, 5] & k_pos <= q_pos");
  CHECK((data | (causal() && strided(2))).text() ==
        "dense[3, 5] | (k_pos <= q_pos && (q_pos - k_pos) % 2 == 0)");
  CHECK((~data).text() == "~dense[3, 5]");
  CHECK((~(data & data)).text() == "~(dense[3, 5] & dense[3, 5])");
  std::vector<std::uint8_t> values(24, 1);
  CHECK(Mask::dense(bytes_view(values, {2, 1, 3, 4})).text() == "dense[2, 1, 3, 4]");
  CHECK(Mask::blocks(bytes_view(values, {4, 6}), 2, 7, 11).text() == "blocks2[7, 11]");
  CHECK(Mask::csr(std::vector<std::int32_t>{0, 1, 2}, std::vector<std::int32_t>{3, 0}, 4).text() ==
        "csr[2, 4]");
}

TEST_CASE("what a mask depends on is known") {
  CHECK_FALSE(causal().uses_batch());
  CHECK(Mask(kK < batch_index()).uses_batch());
  CHECK(Mask(kK < head_index()).uses_head());
  std::vector<std::uint8_t> values(24, 1);
  const Mask per_head = Mask::dense(bytes_view(values, {1, 2, 3, 4}));
  CHECK_FALSE(per_head.uses_batch());
  CHECK(per_head.uses_head());
  CHECK((per_head && Mask(kK < batch_index())).uses_batch());
  CHECK(per_head.lengths() == std::pair<std::int64_t, std::int64_t>(3, 4));
  CHECK((causal() && per_head).lengths() == per_head.lengths());
  CHECK_FALSE(causal().lengths());
  CHECK_FALSE(causal().has_captures());
  CHECK(key_padding(Capture("keep", DType::Bool, 2)).has_captures());
  CHECK((key_padding(Capture("keep", DType::Bool, 2)) && per_head).has_captures());
}

TEST_CASE("the digest names what is seen, not how it was handed over") {
  std::vector<std::uint8_t> bytes(3 * 70);
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    bytes[i] = 1;
  }
  const Mask dense = Mask::dense(bytes_view(bytes, {3, 70}));
  std::vector<std::uint64_t> words(6);
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    words[i / 70 * 2 + i % 70 / 64] |= std::uint64_t{1} << (i % 70 % 64);
    bytes[i] = 0xFE;
  }
  CHECK(dense.digest().size() == 32);
  CHECK(Mask::bits(words, {3, 70}).digest() == dense.digest());
  CHECK(Mask::bits(words, {1, 1, 3, 70}).digest() == dense.digest());
  CHECK(Mask::dense(bytes_view(bytes, {1, 1, 3, 70})).digest() == dense.digest());
  words[1] |= std::uint64_t{1} << 63;  // beyond the row
  CHECK(Mask::bits(words, {3, 70}).digest() == dense.digest());

  TensorView columns = bytes_view(bytes, {3, 35});
  columns.strides = {70, 2};
  std::vector<std::uint8_t> every_other;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    every_other.push_back(bytes[i]);
  }
  CHECK(Mask::dense(columns).digest() == Mask::dense(bytes_view(every_other, {3, 35})).digest());

  words[0] ^= 1;
  CHECK(Mask::bits(words, {3, 70}).digest() != dense.digest());
  CHECK(causal().digest() != (!causal()).digest());
  CHECK((dense && causal()).digest() != (dense || causal()).digest());
}

TEST_CASE("tables count by their values") {
  const auto with = [](std::vector<std::int64_t> values) {
    return Mask(kK < Table("lengths", std::move(values))[batch_index()]);
  };
  CHECK(with({1, 2}).digest() == with({1, 2}).digest());
  CHECK(with({1, 2}).digest() != with({1, 3}).digest());
}

TEST_CASE("a predicate that is none is refused") {
  CHECK_THROWS_WITH_AS(Mask(kK - kQ),
                       "mask: the predicate k_pos - q_pos has the type int, not bool", GraphError);
  CHECK_THROWS_WITH_AS(
      Mask(Expr::scalar("seq") > 3),
      "mask: no scalar seq; masks have batch, head, q_pos, k_pos, q_len and kv_len", GraphError);
  CHECK_THROWS_WITH_AS(Mask(Expr::scalar("q_pos", ScalarType::Float) > 3),
                       "mask: the scalar q_pos is of type float, not int", GraphError);
  CHECK_THROWS_AS(Mask(score() > 0), GraphError);
}

TEST_CASE("data of a wrong form is refused") {
  std::vector<std::uint8_t> values(24);
  CHECK_THROWS_WITH_AS(Mask::dense(bytes_view(values, {24})),
                       "mask: dense data has the shape [24]; its rank must be 2 or 4", GraphError);
  CHECK_THROWS_WITH_AS(Mask::dense(bytes_view(values, {0, 4})),
                       "mask: dense data has the shape [0, 4]; each extent must be in 1 to "
                       "1073741823 and all in 2^36",
                       GraphError);
  CHECK_THROWS_AS(Mask::dense(bytes_view(values, {-1, 4})), GraphError);
  CHECK_THROWS_AS(Mask::dense(bytes_view(values, {1 << 29, 1 << 29})), GraphError);
  TensorView view = bytes_view(values, {4, 6});
  view.dtype = DType::Float32;
  CHECK_THROWS_WITH_AS(Mask::dense(view), "mask: dense data is float32, not bool or uint8",
                       GraphError);
  view = bytes_view(values, {4, 6});
  view.location = Location::Device;
  CHECK_THROWS_WITH_AS(Mask::dense(view), "mask: dense data lies on the device, not on the host",
                       GraphError);
  view = bytes_view(values, {4, 6});
  view.data = nullptr;
  CHECK_THROWS_WITH_AS(Mask::dense(view), "mask: dense data has no address", GraphError);
  view = bytes_view(values, {4, 6});
  view.strides = {1};
  CHECK_THROWS_WITH_AS(Mask::dense(view), "mask: dense data has 1 strides for 2 extents",
                       GraphError);
  CHECK_THROWS_WITH_AS(Mask::bits(std::vector<std::uint64_t>(5), {3, 70}),
                       "mask: bits of [3, 70] take 6 words, not 5", GraphError);
  CHECK_THROWS_AS(Mask::bits({}, {1 << 29, 1 << 29}), GraphError);
  CHECK_THROWS_WITH_AS(
      Mask::blocks(bytes_view(values, {4, 6}), 48, 1000, 1000),
      "mask: block size 48 cuts 1000 queries and 1000 keys into [21, 21] blocks, not [4, 6]",
      GraphError);
  CHECK_THROWS_WITH_AS(
      Mask::blocks(bytes_view(values, {4, 6}), 0, 4, 6),
      "mask: blocks of 0 for 4 queries and 6 keys; each must be in 1 to 1073741823", GraphError);
}

TEST_CASE("lists of keys of a wrong form are refused") {
  const auto csr = [](std::vector<std::int32_t> row_ptr, std::vector<std::int32_t> col_idx,
                      std::int64_t kv_len = 4) { return Mask::csr(row_ptr, col_idx, kv_len); };
  CHECK_NOTHROW(csr({0, 0, 2, 3}, {0, 3, 1}));
  CHECK_THROWS_WITH_AS(csr({}, {}), "mask: the number of csr rows -1 is not in 1 to 1073741823",
                       GraphError);
  CHECK_THROWS_WITH_AS(csr({0, 1}, {0}, 0), "mask: kv_len 0 is not in 1 to 1073741823", GraphError);
  CHECK_THROWS_WITH_AS(csr({1, 1}, {0}), "mask: csr row_ptr starts with 1, not 0", GraphError);
  CHECK_THROWS_WITH_AS(csr({0, 2, 1}, {0}), "mask: csr row_ptr falls from 2 to 1 at row 1",
                       GraphError);
  CHECK_THROWS_WITH_AS(csr({0, 2}, {0}), "mask: csr row_ptr ends with 2, but col_idx has 1 entries",
                       GraphError);
  CHECK_THROWS_WITH_AS(csr({0, 1}, {4}),
                       "mask: csr row 0 holds column 4, which is not below kv_len 4", GraphError);
  CHECK_THROWS_AS(csr({0, 1}, {-1}), GraphError);
  CHECK_THROWS_WITH_AS(csr({0, 0, 2}, {1, 1}),
                       "mask: csr row 1 holds column 1 after 1; columns ascend", GraphError);
}

TEST_CASE("masks of other lengths cannot be combined") {
  CHECK_THROWS_WITH_AS(some_data(3, 5) && some_data(5, 3),
                       "mask: data of [3, 5] and of [5, 3] queries and keys cannot be combined",
                       GraphError);
  std::vector<std::uint8_t> values(60, 1);
  CHECK_THROWS_WITH_AS(Mask::dense(bytes_view(values, {2, 1, 3, 5})) ||
                           Mask::dense(bytes_view(values, {4, 1, 3, 5})),
                       "mask: data for batch 2 and for 4 cannot be combined", GraphError);
  CHECK_NOTHROW(Mask::dense(bytes_view(values, {4, 1, 3, 5})) && some_data(3, 5));
}

TEST_CASE("combinations are bounded, however they grow") {
  Mask chain = some_data();
  CHECK_THROWS_WITH_AS(
      [&] {
        for (int i = 0; i < 1000; ++i) {
          chain = chain || some_data();
        }
      }(),
      "mask: a combination of 513 parts, 257 deep; the limits are 4096 and 256", GraphError);
  Mask doubled = some_data();
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i) {
          doubled = doubled && doubled;
        }
      }(),
      GraphError);
}
