#include "mask/features.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "random_mask.hpp"

using namespace stof;
using mask::Extent;
using mask::MaskClass;
using mask::MaskFeatures;

namespace {

MaskFeatures features_of(const Mask& mask, const Extent& extent) {
  return mask::measure(mask, mask::build_layout(mask, extent));
}

MaskClass class_of(const Mask& mask, std::int64_t n = 256) {
  return features_of(mask, {.q_len = n, .kv_len = n}).mask_class;
}

}  // namespace

TEST_CASE("counts of random masks are those of their pairs") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(3 * extent.q_len + extent.kv_len), extent);
    for (int i = 0; i < 6; ++i) {
      const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
      INFO(mask.text());
      const MaskFeatures features = features_of(mask, extent);
      const mask::BitTensor bits = mask::evaluate_all(mask, extent);
      std::vector<std::int64_t> keys(bits.batch * bits.heads * bits.rows);
      for (std::size_t r = 0; r < keys.size(); ++r) {
        for (std::int64_t w = 0; w < bits.words_per_row(); ++w) {
          keys[r] += std::popcount(bits.words[r * bits.words_per_row() + w]);
        }
      }
      std::ranges::sort(keys);
      std::int64_t total = 0;
      for (const std::int64_t count : keys) {
        total += count;
      }
      const auto rows = std::ssize(keys);
      CHECK(features.mean_keys ==
            doctest::Approx(static_cast<double>(total) / static_cast<double>(rows)));
      CHECK(features.density == doctest::Approx(static_cast<double>(total) /
                                                static_cast<double>(rows * extent.kv_len)));
      CHECK(features.min_keys == keys.front());
      CHECK(features.max_keys == keys.back());
      CHECK(features.median_keys == keys[(rows - 1) / 2]);
      CHECK(features.percentile_90_keys == keys[90 * (rows - 1) / 100]);
      CHECK(features.percentile_99_keys == keys[99 * (rows - 1) / 100]);
      CHECK(features.empty_rows == std::ranges::count(keys, 0));
    }
  }
}

// The tiles of the paper's artifact at 1024: 120 full and 16 part, and so on.
TEST_CASE("tile counts of known masks") {
  const Extent extent = {.batch = 4, .heads = 12, .q_len = 1024, .kv_len = 1024};
  const auto check = [&](const Mask& mask, int full, int part, double density_percent) {
    INFO(mask.text());
    const MaskFeatures features = features_of(mask, extent);
    CHECK(features.tiles == 256);
    CHECK(features.full_tiles == full);
    CHECK(features.part_tiles == part);
    CHECK(features.density * 100 == doctest::Approx(density_percent).epsilon(1e-3));
  };
  check(causal(), 120, 16, 50.05);
  check(sliding_window(64, 0), 0, 31, 6.15);
  check(longformer(32, 32) || global_tokens(512, 32), 2, 96, 17.86);
}

TEST_CASE("the class is the cheapest that will do") {
  CHECK(class_of(Mask()) == MaskClass::None);
  CHECK(class_of(Mask(key_position() < 1000)) == MaskClass::None);
  CHECK(class_of(causal()) == MaskClass::IntervalRows);
  CHECK(class_of(sliding_window(9, 9)) == MaskClass::IntervalRows);
  CHECK(class_of(documents({0, 100, 256}) && causal()) == MaskClass::IntervalRows);
  CHECK(class_of(strided(3)) == MaskClass::Bitmap);
  CHECK(class_of(longformer(16, 2)) == MaskClass::Bitmap);
  CHECK(class_of(random_tokens(0.1, 1)) == MaskClass::Bitmap);
  CHECK(class_of(bigbird(16, 3, 1, 2, 1)) == MaskClass::Bitmap);
  std::vector<std::uint8_t> keep(256 * 256);
  for (std::size_t i = 0; i < keep.size(); i += 3) {
    keep[i] = 1;
  }
  const Mask data =
      Mask::dense({.data = keep.data(), .dtype = DType::Bool, .shape = {256, 256}, .strides = {}});
  CHECK(class_of(data) == MaskClass::Bitmap);
  CHECK(class_of(data && causal()) == MaskClass::Bitmap);
  CHECK(features_of(data, {.q_len = 256, .kv_len = 256}).predicate_operations == 0);
}

TEST_CASE("bits that would fill memory are computed, where that is cheap") {
  const Extent extent = {.q_len = 256, .kv_len = 256};
  const auto class_with_many = [&](const Mask& mask) {
    MaskFeatures features = features_of(mask, extent);
    features.distinct_bitmaps = 1 << 18;
    return mask::classified(mask, features).mask_class;
  };
  CHECK(class_with_many(strided(3)) == MaskClass::InlinePredicate);
  CHECK(class_with_many(longformer(16, 2)) == MaskClass::InlinePredicate);
  CHECK(class_with_many(causal()) == MaskClass::IntervalRows);
  CHECK(class_with_many(random_tokens(0.1, 1)) == MaskClass::Bitmap);
  CHECK(class_with_many(bigbird(16, 3, 1, 2, 1)) == MaskClass::Bitmap);
}

TEST_CASE("what captures hold today decides no class") {
  std::vector<std::uint8_t> all(64, 1);
  const mask::CaptureValues values = {
      {"keep", {.data = all.data(), .dtype = DType::Bool, .shape = {1, 64}, .strides = {}}}};
  const Mask mask = key_padding(Capture("keep", DType::Bool, 2));
  const Extent extent = {.q_len = 64, .kv_len = 64};
  const MaskFeatures features = mask::measure(mask, mask::build_layout(mask, extent, values));
  CHECK(features.full_tiles == features.tiles);
  CHECK(features.mask_class == MaskClass::InlinePredicate);
}

TEST_CASE("planes that are alike have as many times the tiles") {
  const Extent extent = {.batch = 2, .heads = 3, .q_len = 130, .kv_len = 200};
  const Mask shared = random_tokens(0.01, 4) && Mask(query_position() % 3 != 0);
  const Mask of_heads = shared || Mask(head_index() < 0);  // the same for each
  const MaskFeatures one = features_of(shared, extent);
  MaskFeatures all = features_of(of_heads, extent);
  CHECK(all.mask_heads == 3);
  all.predicate_operations = one.predicate_operations;
  all.distinct_bitmaps = 3 * one.distinct_bitmaps;  // equal ones are kept once
  CHECK(mask::with_planes(one, 1, 3) == all);
  CHECK(mask::with_planes(all, 1, 1) == one);
}

TEST_CASE("classes have names") {
  CHECK(mask::name(MaskClass::None) == "none");
  CHECK(mask::name(MaskClass::IntervalRows) == "interval_rows");
  CHECK(mask::name(MaskClass::InlinePredicate) == "inline_predicate");
  CHECK(mask::name(MaskClass::Bitmap) == "bitmap");
}
