#include "mask/rows.hpp"

#include <doctest/doctest.h>

#include "random_mask.hpp"

using namespace stof;
using mask::Extent;
using mask::MaskLayout;

namespace {

std::vector<std::int32_t> keys_of(const test::Sees& sees, const Extent& extent, std::int64_t b,
                                  std::int64_t h, std::int64_t q) {
  std::vector<std::int32_t> keys;
  for (std::int64_t k = 0; k < extent.kv_len; ++k) {
    if (sees(b, h, q, k)) {
      keys.push_back(static_cast<std::int32_t>(k));
    }
  }
  return keys;
}

// Whether the lists of the layout say what the mask means.
void check_lists(const MaskLayout& layout, const test::Sees& sees) {
  const mask::RowSpans spans = mask::row_spans(layout);
  const mask::KeyRows rows = mask::key_rows(layout);
  const auto intervals = mask::interval_rows(layout);
  bool are_intervals = true;
  for (std::int64_t r = 0; r < std::ssize(spans.count); ++r) {
    const std::int64_t plane = r / layout.extent.q_len;
    const auto keys = keys_of(sees, layout.extent, plane / layout.mask_heads,
                              plane % layout.mask_heads, r % layout.extent.q_len);
    CHECK(keys == std::vector(rows.col_idx.begin() + rows.row_ptr[r],
                              rows.col_idx.begin() + rows.row_ptr[r + 1]));
    CHECK(spans.count[r] == std::ssize(keys));
    CHECK(spans.first[r] == (keys.empty() ? 0 : keys.front()));
    CHECK(spans.end[r] == (keys.empty() ? 0 : keys.back() + 1));
    are_intervals =
        are_intervals && (keys.empty() || keys.back() - keys.front() + 1 == std::ssize(keys));
  }
  CHECK(spans.are_intervals() == are_intervals);
  CHECK(intervals.has_value() == are_intervals);
  if (intervals) {
    CHECK(intervals->first == spans.first);
    CHECK(intervals->end == spans.end);
  }
}

}  // namespace

TEST_CASE("lists of keys of random masks") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + 7 * extent.kv_len), extent);
    for (int i = 0; i < 6; ++i) {
      // The first key is seen by all, so that there is a layout.
      const test::MaskCase c = random.next();
      const Mask mask = c.mask || Mask(key_position() == 0);
      INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
      check_lists(mask::build_layout(mask, extent),
                  [&](auto b, auto h, auto q, auto k) { return k == 0 || c.sees(b, h, q, k); });
    }
  }
}

TEST_CASE("causal, windows and documents are intervals, with empty rows too") {
  const Extent extent = {.q_len = 200, .kv_len = 150};
  for (const Mask& mask : {Mask(), causal(), causal_bottom_right(), sliding_window(20, 3),
                           block_causal(48), Mask(key_position() < 2 * query_position() - 100)}) {
    CHECK(mask::interval_rows(mask::build_layout(mask, extent)));
  }
  const Mask packed = documents({0, 30, 31, 200}) && causal();
  CHECK(mask::interval_rows(mask::build_layout(packed, extent)));
  for (const Mask& mask : {strided(2), longformer(3, 1), prefix(20) && !global_tokens(40, 2)}) {
    CHECK_FALSE(mask::interval_rows(mask::build_layout(mask, extent)));
  }
}

TEST_CASE("bands are found, with rows that they leave empty") {
  using mask::Band;
  const auto band_of = [](const Mask& mask, const Extent& extent) {
    return mask::band(mask::build_layout(mask, extent));
  };
  const Extent extent = {.q_len = 200, .kv_len = 150};
  CHECK(band_of({}, extent) == Band{-200, 150});
  CHECK(band_of(causal(), extent) == Band{-200, 1});
  CHECK(band_of(causal_bottom_right(), extent) == Band{-200, -49});
  CHECK(band_of(sliding_window(20, 3), extent) == Band{-20, 4});
  CHECK(band_of(Mask(key_position() >= query_position() + 9), extent) == Band{9, 150});
  CHECK(band_of(sliding_window(5, 5) && Mask(head_index() >= 0), extent) == Band{-5, 6});
  const Extent heads = {.heads = 3, .q_len = 100, .kv_len = 100};
  CHECK(band_of(Mask(key_position() - query_position() <= head_index()), heads) == std::nullopt);
  for (const Mask& mask : {block_causal(48), prefix(20), strided(2), longformer(3, 1),
                           Mask(key_position() < 2 * query_position() - 100),
                           causal() && Mask(query_position() != 40)}) {
    CHECK(band_of(mask, extent) == std::nullopt);
  }
}

TEST_CASE("rows of what no query sees are empty") {
  const MaskLayout layout = mask::build_layout(Mask(query_position() == 70 && key_position() >= 64),
                                               {.q_len = 100, .kv_len = 130});
  const auto rows = mask::interval_rows(layout);
  REQUIRE(rows);
  CHECK(rows->first[69] == 0);
  CHECK(rows->end[69] == 0);
  CHECK(rows->first[70] == 64);
  CHECK(rows->end[70] == 130);
}
