#include "mask/layout.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::build_layout;
using mask::Extent;
using mask::MaskLayout;

namespace {

using Indices = std::vector<std::int32_t>;

constexpr int kEmpty = 0;
constexpr int kFull = 1;
constexpr int kPart = 2;

// The class of a tile by its definition.
int class_of(const test::Sees& sees, const Extent& extent, std::int64_t b, std::int64_t h,
             std::int64_t i, std::int64_t j) {
  int seen = 0;
  int existing = 0;
  for (std::int64_t q = 64 * i; q < std::min(extent.q_len, 64 * i + 64); ++q) {
    for (std::int64_t k = 64 * j; k < std::min(extent.kv_len, 64 * j + 64); ++k) {
      ++existing;
      seen += sees(b, h, q, k) ? 1 : 0;
    }
  }
  return seen == 0 ? kEmpty : seen == existing ? kFull : kPart;
}

bool lists(const mask::TileRows& rows, std::int64_t r, std::int64_t j) {
  const auto row = rows.row(r);
  return std::ranges::find(row, j) != row.end();
}

// The bit of a pair of a tile, from the words as the format defines them.
bool bitmap_bit(std::span<const std::uint64_t, 64> words, std::int64_t r, std::int64_t c) {
  return words[(c / 8) * 8 + r / 8] >> ((r % 8) * 8 + c % 8) & 1;
}

// Whether every bit of the bitmap of part tile p is right, those beyond the lengths included.
bool bits_agree(const MaskLayout& layout, std::int64_t p, const test::Sees& sees, std::int64_t b,
                std::int64_t h, std::int64_t i) {
  const auto words = layout.bitmap(layout.part_bitmap[p]);
  const std::int64_t j = layout.part.col_idx[p];
  for (std::int64_t r = 0; r < 64; ++r) {
    for (std::int64_t c = 0; c < 64; ++c) {
      const std::int64_t q = 64 * i + r;
      const std::int64_t k = 64 * j + c;
      const bool exists = q < layout.extent.q_len && k < layout.extent.kv_len;
      if (bitmap_bit(words, r, c) != (exists && sees(b, h, q, k))) {
        return false;
      }
    }
  }
  return true;
}

void check_rows(const MaskLayout& layout, const test::Sees& sees) {
  for (std::int64_t r = 0; r < layout.row_count(); ++r) {
    const std::int64_t b = r / layout.tile_rows / layout.mask_heads;
    const std::int64_t h = r / layout.tile_rows % layout.mask_heads;
    const std::int64_t i = r % layout.tile_rows;
    for (const mask::TileRows* rows : {&layout.full, &layout.part, &layout.load}) {
      CHECK(std::ranges::adjacent_find(rows->row(r), std::ranges::greater_equal{}) ==
            rows->row(r).end());
    }
    for (std::int64_t j = 0; j < layout.tile_cols; ++j) {
      const int expected = class_of(sees, layout.extent, b, h, i, j);
      CHECK(lists(layout.full, r, j) == (expected == kFull));
      CHECK(lists(layout.part, r, j) == (expected == kPart));
      CHECK(lists(layout.load, r, j) == (expected != kEmpty));
    }
    for (auto p = layout.part.row_ptr[r]; p < layout.part.row_ptr[r + 1]; ++p) {
      CHECK(bits_agree(layout, p, sees, b, h, i));
    }
  }
}

// Equal bitmaps are stored once, numbered by their first use.
void check_pool(const MaskLayout& layout) {
  std::int32_t next = 0;
  for (const std::int32_t n : layout.part_bitmap) {
    CHECK(n <= next);
    next = std::max(next, n + 1);
  }
  CHECK(std::ssize(layout.bitmaps) == 64 * next);
  std::set<std::vector<std::uint64_t>> distinct;
  for (std::int32_t n = 0; n < next; ++n) {
    const auto words = layout.bitmap(n);
    distinct.emplace(words.begin(), words.end());
  }
  CHECK(std::ssize(distinct) == next);
}

void check_layout(const test::MaskCase& c, const Extent& extent) {
  INFO(c.mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
  const MaskLayout layout = build_layout(c.mask, extent);
  CHECK(layout.extent == extent);
  CHECK(layout.mask_batch == (c.mask.uses_batch() ? extent.batch : 1));
  CHECK(layout.mask_heads == (c.mask.uses_head() ? extent.heads : 1));
  CHECK(layout.tile_rows == (extent.q_len + 63) / 64);
  CHECK(layout.tile_cols == (extent.kv_len + 63) / 64);
  CHECK(std::ssize(layout.full.row_ptr) == layout.row_count() + 1);
  CHECK(layout.part_bitmap.size() == layout.part.col_idx.size());
  check_rows(layout, c.sees);
  check_pool(layout);
}

bool sees_anything(const test::Sees& sees, const Extent& extent) {
  for (std::int64_t b = 0; b < extent.batch; ++b) {
    for (std::int64_t h = 0; h < extent.heads; ++h) {
      for (std::int64_t q = 0; q < extent.q_len; ++q) {
        for (std::int64_t k = 0; k < extent.kv_len; ++k) {
          if (sees(b, h, q, k)) {
            return true;
          }
        }
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("the example of the paper, figure 6") {
  // Rows of tiles: f full, p part, . empty.
  constexpr std::string_view kTiles[] = {"fp.p", "ffp.", "fpfp", "f.pf"};
  const test::Sees sees = [&](auto, auto, auto q, auto k) {
    const char tile = kTiles[q / 64][k / 64];
    return tile == 'f' || (tile == 'p' && (q + k) % 3 == 0);
  };
  std::vector<std::uint8_t> keep(256 * 256);
  for (std::size_t at = 0; at < keep.size(); ++at) {
    keep[at] = sees(0, 0, at / 256, at % 256) ? 1 : 0;
  }
  const MaskLayout layout = build_layout(
      Mask::dense({.data = keep.data(), .dtype = DType::Bool, .shape = {256, 256}, .strides = {}}),
      {.q_len = 256, .kv_len = 256});
  CHECK(layout.load.row_ptr == Indices{0, 3, 6, 10, 13});
  CHECK(layout.load.col_idx == Indices{0, 1, 3, 0, 1, 2, 0, 1, 2, 3, 0, 2, 3});
  CHECK(layout.full.row_ptr == Indices{0, 1, 3, 5, 7});
  CHECK(layout.full.col_idx == Indices{0, 0, 1, 0, 2, 0, 3});
  CHECK(layout.part.row_ptr == Indices{0, 2, 3, 5, 6});
  CHECK(layout.part.col_idx == Indices{1, 3, 2, 1, 3, 2});
}

TEST_CASE("random masks at hostile lengths") {
  int built = 0;
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len * 1000 + extent.kv_len), extent);
    for (int i = 0; i < 8; ++i) {
      const test::MaskCase c = random.next();
      if (sees_anything(c.sees, extent)) {
        check_layout(c, extent);
        ++built;
      } else {
        CHECK_THROWS_AS(build_layout(c.mask, extent), GraphError);
      }
    }
  }
  CHECK(built > 30);
}

TEST_CASE("a tile that hangs over is full if all that exists of it is seen") {
  const MaskLayout all = build_layout(Mask(), {.q_len = 65, .kv_len = 100});
  CHECK(all.full.col_idx == std::vector<std::int32_t>{0, 1, 0, 1});
  CHECK(all.part.col_idx.empty());
  CHECK(all.bitmaps.empty());
  // The same from bits, which no interval settles.
  std::vector<std::uint8_t> ones(65 * 100, 1);
  CHECK(build_layout(
            Mask::dense(
                {.data = ones.data(), .dtype = DType::Bool, .shape = {65, 100}, .strides = {}}),
            {.q_len = 65, .kv_len = 100}) == all);
}

TEST_CASE("planes follow one another, and strides are 0 where all share one") {
  const Extent extent = {.batch = 2, .heads = 3, .q_len = 128, .kv_len = 128};
  const MaskLayout shared = build_layout(causal(), extent);
  CHECK(shared.row_count() == 2);
  CHECK(shared.batch_stride() == 0);
  CHECK(shared.head_stride() == 0);
  const MaskLayout each = build_layout(
      Mask(key_position() <= query_position() + 64 * head_index() + batch_index()), extent);
  CHECK(each.row_count() == 12);
  CHECK(each.batch_stride() == 6);
  CHECK(each.head_stride() == 2);
  const MaskLayout by_head = build_layout(Mask(key_position() <= 64 * head_index()), extent);
  CHECK(by_head.batch_stride() == 0);
  CHECK(by_head.head_stride() == 2);
}

TEST_CASE("expressions and data give the same layout") {
  const Extent extent = {.q_len = 200, .kv_len = 333};
  const Mask mask = longformer(20, 5) || strided(7);
  mask::BitTensor bits = mask::evaluate_all(mask, extent);
  CHECK(build_layout(Mask::bits(bits.words, {200, 333}), extent) == build_layout(mask, extent));
}

TEST_CASE("equal bitmaps are stored once") {
  const MaskLayout layout = build_layout(causal(), {.q_len = 1024, .kv_len = 1024});
  CHECK(layout.part.col_idx.size() == 16);
  CHECK(layout.bitmaps.size() == 64);
  CHECK(layout.full.col_idx.size() == 120);
}

TEST_CASE("long sequences are settled by intervals") {
  const std::int64_t n = 1 << 17;
  const MaskLayout layout = build_layout(sliding_window(1023, 0), {.q_len = n, .kv_len = n});
  CHECK(layout.full.col_idx.size() == static_cast<std::size_t>(15 * (n / 64) - 120));
  CHECK(layout.bitmaps.size() == 128);
}

TEST_CASE("layouts that cannot be are refused") {
  CHECK_THROWS_WITH_AS(build_layout(Mask(false), {.q_len = 8, .kv_len = 9}),
                       "mask: no query sees any key with 8 queries and 9 keys: false", GraphError);
  CHECK_THROWS_WITH_AS(build_layout(Mask(key_position() > 100), {.q_len = 8, .kv_len = 9}),
                       "mask: no query sees any key with 8 queries and 9 keys: k_pos > 100",
                       GraphError);
  CHECK_THROWS_WITH_AS(build_layout(causal(), {.q_len = 1 << 28, .kv_len = 1 << 28}),
                       "mask: 1 x 1 x 4194304 x 4194304 tiles of 64 x 64 (batch, heads, rows, "
                       "columns) pass the limit of 2147483647",
                       GraphError);
  CHECK_THROWS_AS(build_layout(causal(), {.q_len = 0, .kv_len = 9}), GraphError);
  CHECK_THROWS_AS(
      build_layout(key_padding(Capture("keep", DType::Bool, 2)), {.q_len = 8, .kv_len = 9}),
      GraphError);
}

TEST_CASE("pairs that would take hours to look at are refused, at once") {
  const Extent extent{.q_len = 1'000'000, .kv_len = 1'000'000};
  CHECK_THROWS_WITH_AS(
      build_layout(random_tokens(0.1, 1), extent),
      doctest::Contains("with 1000000 queries and 1000000 keys about 2.4e+08 tiles of 64 x 64 "
                        "would be looked at pair by pair, more than the limit of 33554432"),
      GraphError);
  // As many tiles, of which intervals settle nearly all.
  CHECK(build_layout(sliding_window(64, 0), extent).part.col_idx.size() < 100'000);
  // Of 64 heads, of which the first tiles of rows alone are settled.
  const Mask later = head_index() < 64 && query_position() >= 64 && random_tokens(0.5, 1);
  CHECK_THROWS_AS(build_layout(later || sliding_window(8, 0),
                               {.batch = 1, .heads = 64, .q_len = 60'000, .kv_len = 60'000}),
                  GraphError);
}

TEST_CASE("captures with values build a layout") {
  std::vector<std::uint8_t> keep(2 * 70);
  keep[3] = keep[70 + 69] = 1;
  const Mask mask = key_padding(Capture("keep", DType::Bool, 2));
  const MaskLayout layout = build_layout(
      mask, {.batch = 2, .heads = 1, .q_len = 64, .kv_len = 70},
      {{"keep", {.data = keep.data(), .dtype = DType::Bool, .shape = {2, 70}, .strides = {}}}});
  CHECK(layout.part.col_idx == std::vector<std::int32_t>{0, 1});
}

TEST_CASE("a bitmap, its rows and its lanes hold the same bits") {
  std::mt19937_64 random(5);
  std::array<std::uint64_t, 64> rows{};
  for (std::uint64_t& row : rows) {
    row = random();
  }
  const auto bitmap = mask::bitmap_of_rows(rows);
  CHECK(mask::bitmap_rows(bitmap) == rows);
  const auto lanes = mask::lane_ordered_bitmap(bitmap);
  int seen = 0;
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < 8; ++j) {
        for (int e = 0; e < 4; ++e) {
          const int row = 16 * warp + lane / 4 + 8 * ((e / 2) & 1);
          const int column = 8 * j + 2 * (lane % 4) + (e & 1);
          const bool bit = lanes[32 * warp + lane] >> (4 * j + e) & 1;
          REQUIRE(bit == bitmap_bit(bitmap, row, column));
          REQUIRE(bit == ((rows[row] >> column & 1) != 0));
          ++seen;
        }
      }
    }
  }
  CHECK(seen == 64 * 64);
}
