#include "mask/evaluate.hpp"

#include <array>

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::Evaluator;
using mask::Extent;
using mask::Truth;

TEST_CASE("random masks see what they mean, in rows and point by point") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len), extent);
    for (int i = 0; i < 12; ++i) {
      const test::MaskCase c = random.next(3);
      INFO(c.mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
      CHECK(test::first_difference(c, extent) == "");
      Evaluator evaluator(c.mask, extent);
      const auto b = random.below(extent.batch);
      const auto h = random.below(extent.heads);
      const auto q = random.below(extent.q_len);
      const auto k = random.below(extent.kv_len);
      CHECK(evaluator.at({.batch = b, .head = h, .query = q}, k) == c.sees(b, h, q, k));
    }
  }
}

TEST_CASE("keys beyond kv_len are not seen, whatever the mask") {
  const Extent extent = {.q_len = 2, .kv_len = 70};
  std::vector<std::uint8_t> none(140);
  const Mask data =
      Mask::dense({.data = none.data(), .dtype = DType::Bool, .shape = {2, 70}, .strides = {}});
  for (const Mask& mask : {Mask(), !data, Mask(key_position() >= 0)}) {
    std::array<std::uint64_t, 3> words = {5, 5, 5};
    Evaluator(mask, extent).row({}, 0, words);
    CHECK(words == std::array<std::uint64_t, 3>{~std::uint64_t{0}, 0x3F, 0});
  }
}

TEST_CASE("rows may begin at any word") {
  const Extent extent = {.q_len = 4, .kv_len = 300};
  test::RandomMask random(3, extent);
  for (int i = 0; i < 20; ++i) {
    Evaluator evaluator(random.next().mask, extent);
    std::array<std::uint64_t, 5> all{};
    std::array<std::uint64_t, 2> part{};
    evaluator.row({.query = 3}, 0, all);
    evaluator.row({.query = 3}, 192, part);
    CHECK(part == std::array<std::uint64_t, 2>{all[3], all[4]});
  }
}

TEST_CASE("what is said of a region holds for each of its pairs") {
  int settled = 0;
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.kv_len) + 99, extent);
    for (int i = 0; i < 40; ++i) {
      const test::MaskCase c = random.next();
      mask::Region region = {.batch = random.below(extent.batch),
                             .head = random.below(extent.heads),
                             .q_begin = random.below(extent.q_len),
                             .q_end = 0,
                             .k_begin = random.below(extent.kv_len),
                             .k_end = 0};
      region.q_end = region.q_begin + 1 + random.below(extent.q_len - region.q_begin);
      region.k_end = region.k_begin + 1 + random.below(extent.kv_len - region.k_begin);
      const Truth truth = Evaluator(c.mask, extent).over(region);
      settled += truth == Truth::Unknown ? 0 : 1;
      INFO(c.mask.text());
      for (auto q = region.q_begin; truth != Truth::Unknown && q < region.q_end; ++q) {
        for (auto k = region.k_begin; k < region.k_end; ++k) {
          REQUIRE(c.sees(region.batch, region.head, q, k) == (truth == Truth::Always));
        }
      }
    }
  }
  CHECK(settled > 40);
}

TEST_CASE("captures read their values") {
  std::vector<std::int32_t> keep = {1, 0, 7, 0, 0, -1};
  std::vector<std::int64_t> large = {std::int64_t{1} << 60, (std::int64_t{1} << 60) + 1};
  const Mask padding = key_padding(Capture("keep", DType::Int32, 2));
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 2, .kv_len = 3};
  const mask::CaptureValues values = {
      {"keep", {.data = keep.data(), .dtype = DType::Int32, .shape = {2, 3}, .strides = {}}},
      {"large", {.data = large.data(), .dtype = DType::Int64, .shape = {2}, .strides = {}}}};
  const mask::BitTensor bits = mask::evaluate_all(padding, extent, values);
  for (int b = 0; b < 2; ++b) {
    for (int k = 0; k < 3; ++k) {
      CHECK(bits.at(b, 0, 1, k) == (keep[3 * b + k] != 0));
    }
  }
  // Indices that are out of range move to the nearest end, and 64 bits stay 64 bits.
  const Capture capture("large", DType::Int64, 1);
  const Mask odd = capture(key_position() - 1) % 2 == 1;
  CHECK(mask::evaluate_all(odd, {.q_len = 1, .kv_len = 4}, values).words[0] == 0b1100);
}

TEST_CASE("captures without fitting values are refused") {
  const Mask padding = key_padding(Capture("keep", DType::Int32, 2));
  const Extent extent = {.batch = 2, .heads = 1, .q_len = 2, .kv_len = 3};
  std::vector<std::int32_t> keep(6);
  TensorView view = {.data = keep.data(), .dtype = DType::Int32, .shape = {6}, .strides = {}};
  CHECK_THROWS_WITH_AS(
      Evaluator(padding, extent),
      "mask: keep is known at run time only; what depends on its values cannot be built here",
      GraphError);
  CHECK_THROWS_WITH_AS(Evaluator(padding, extent, {{"keep", view}}),
                       "mask: keep is int32 of rank 1, not int32 of rank 2", GraphError);
  view.shape = {2, 0};
  CHECK_THROWS_WITH_AS(Evaluator(padding, extent, {{"keep", view}}), "mask: keep is empty",
                       GraphError);
  view.shape = {2, 3};
  view.location = Location::Device;
  CHECK_THROWS_AS(Evaluator(padding, extent, {{"keep", view}}), GraphError);
}

TEST_CASE("a mask that does not fit the attention is refused") {
  std::vector<std::uint8_t> values(2 * 3 * 4);
  const Mask data = Mask::dense(
      {.data = values.data(), .dtype = DType::UInt8, .shape = {2, 1, 3, 4}, .strides = {}});
  const auto check = [](const Mask& mask, const Extent& extent) {
    mask::check_extent(mask, extent);
  };
  CHECK_NOTHROW(check(data, {.batch = 2, .heads = 8, .q_len = 3, .kv_len = 4}));
  CHECK_THROWS_WITH_AS(check(data, {.batch = 2, .heads = 8, .q_len = 4, .kv_len = 4}),
                       "mask: data of 3 queries and 4 keys for an attention of 4 and 4",
                       GraphError);
  CHECK_THROWS_WITH_AS(check(data, {.batch = 3, .heads = 8, .q_len = 3, .kv_len = 4}),
                       "mask: data for batch 2, but batch is 3", GraphError);
  CHECK_THROWS_WITH_AS(check(Mask(), {.batch = 0, .heads = 1, .q_len = 1, .kv_len = 1}),
                       "mask: batch 0 is not in 1 to 1073741823", GraphError);
  CHECK_THROWS_AS(check(Mask(), {.q_len = 1, .kv_len = std::int64_t{1} << 40}), GraphError);

  const Table lengths("lengths", std::vector<std::int64_t>{3, 4});
  const Mask padded = key_position() < lengths[batch_index()];
  CHECK_NOTHROW(check(padded, {.batch = 2, .heads = 1, .q_len = 9, .kv_len = 9}));
  CHECK_THROWS_WITH_AS(check(padded && !data, {.batch = 4, .heads = 1, .q_len = 3, .kv_len = 4}),
                       "mask: data for batch 2, but batch is 4", GraphError);
  CHECK_THROWS_WITH_AS(check(padded, {.batch = 4, .heads = 1, .q_len = 9, .kv_len = 9}),
                       "mask: table lengths has 2 entries, but batch is 4", GraphError);
  CHECK_THROWS_WITH_AS(check(key_padding({{3, 4}}), {.batch = 4, .q_len = 9, .kv_len = 9}),
                       "mask: key_padding has 2 lengths, but batch is 4", GraphError);
  CHECK_THROWS_WITH_AS(check(key_padding({{3, 4, 9}}), {.batch = 2, .q_len = 9, .kv_len = 9}),
                       "mask: key_padding has 3 lengths, but batch is 2", GraphError);
  CHECK_NOTHROW(check(key_padding({{3}}), {.batch = 4, .q_len = 9, .kv_len = 9}));
  CHECK_THROWS_WITH_AS(
      check(share_question(std::vector<std::int32_t>{0, 3, 8}), {.q_len = 8, .kv_len = 9}),
      "mask: documents end at 8, but kv_len is 9", GraphError);
  CHECK_THROWS_WITH_AS(mask::check_extent(padded, {.batch = 4, .q_len = 9, .kv_len = 9}, "like"),
                       "like: table lengths has 2 entries, but batch is 4", GraphError);
  CHECK_NOTHROW(check(key_position() < lengths[batch_index() + 1],
                      {.batch = 4, .heads = 1, .q_len = 9, .kv_len = 9}));
  CHECK_THROWS_AS(check(documents({0, 5, 9}), {.q_len = 9, .kv_len = 10}), GraphError);
  CHECK_NOTHROW(check(documents({0, 5, 9}), {.q_len = 9, .kv_len = 9}));
}

TEST_CASE("what is too large to be written out is refused") {
  CHECK_THROWS_WITH_AS(mask::evaluate_all(Mask(), {.q_len = 1 << 20, .kv_len = 1 << 20}),
                       "mask: [1, 1, 1048576, 1048576] is too large to be written out in full",
                       GraphError);
}
