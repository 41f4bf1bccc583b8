#include "mask/tiles.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::derive_tiles;
using mask::Extent;
using mask::TileClass;
using mask::TileLists;

namespace {

// The class of queries [q, q + rows) and keys [k, k + columns) by its definition.
TileClass class_of(const mask::BitTensor& bits, std::int64_t b, std::int64_t h, std::int64_t q,
                   std::int64_t rows, std::int64_t k, std::int64_t columns) {
  std::int64_t seen = 0;
  std::int64_t existing = 0;
  for (std::int64_t i = q; i < std::min(bits.rows, q + rows); ++i) {
    for (std::int64_t j = k; j < std::min(bits.columns, k + columns); ++j) {
      ++existing;
      seen += bits.at(b, h, i, j) ? 1 : 0;
    }
  }
  return seen == 0 ? TileClass::Empty : seen == existing ? TileClass::Full : TileClass::Part;
}

// 64 rows after 64 rows, two bits each.
unsigned sub_classes_of(const mask::BitTensor& bits, std::int64_t b, std::int64_t h, std::int64_t q,
                        std::int64_t rows, std::int64_t k, std::int64_t columns) {
  unsigned classes = 0;
  for (std::int64_t s = 0; 64 * s < rows; ++s) {
    classes |= static_cast<unsigned>(
                   class_of(bits, b, h, q + 64 * s, std::min<std::int64_t>(rows, 64), k, columns))
               << (2 * s);
  }
  return classes;
}

void check_row(const TileLists& lists, const mask::BitTensor& bits, std::int64_t r) {
  const std::int64_t plane = r / lists.q_tiles;
  const std::int64_t b = plane / lists.mask_heads;
  const std::int64_t h = plane % lists.mask_heads;
  const std::int64_t q = r % lists.q_tiles * lists.tile_q;
  std::int32_t at = lists.row_ptr[r];
  for (std::int64_t c = 0; c < lists.kv_tiles; ++c) {
    const std::int64_t k = c * lists.tile_k;
    const TileClass expected = class_of(bits, b, h, q, lists.tile_q, k, lists.tile_k);
    const bool is_listed = at < lists.row_ptr[r + 1] && lists.col_idx[at] == c;
    REQUIRE(is_listed == (expected != TileClass::Empty));
    if (is_listed) {
      REQUIRE(lists.classes[at] == expected);
      REQUIRE(lists.sub_classes[at] ==
              sub_classes_of(bits, b, h, q, lists.tile_q, k, lists.tile_k));
      ++at;
    }
  }
  REQUIRE(at == lists.row_ptr[r + 1]);
}

void check_order(const TileLists& lists) {
  std::vector<std::int32_t> expected(lists.row_ptr.size() - 1);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    expected[r] = static_cast<std::int32_t>(r);
  }
  std::ranges::sort(expected, [&](std::int32_t a, std::int32_t b) {
    const auto length_a = lists.row_ptr[a + 1] - lists.row_ptr[a];
    const auto length_b = lists.row_ptr[b + 1] - lists.row_ptr[b];
    return length_a != length_b ? length_a > length_b : a < b;
  });
  CHECK(lists.order == expected);
}

void check_tiles(const mask::MaskLayout& layout, const mask::BitTensor& bits, std::int64_t tile_q,
                 std::int64_t tile_k) {
  INFO(tile_q, " x ", tile_k, " tiles of ", bits.rows, " x ", bits.columns);
  const TileLists lists = derive_tiles(layout, tile_q, tile_k);
  CHECK(lists.q_tiles == (bits.rows + tile_q - 1) / tile_q);
  CHECK(lists.kv_tiles == (bits.columns + tile_k - 1) / tile_k);
  CHECK(std::ssize(lists.row_ptr) == bits.batch * bits.heads * lists.q_tiles + 1);
  for (std::int64_t r = 0; r + 1 < std::ssize(lists.row_ptr); ++r) {
    check_row(lists, bits, r);
  }
  check_order(lists);
}

}  // namespace

TEST_CASE("every kernel tile has the class that the mask gives it") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + 31 * extent.kv_len), extent);
    for (const std::int64_t tile_q : {16, 32, 64, 128, 192, 256}) {
      const std::int64_t any_tile_k = 8 * (1 + random.below(32));
      const Mask mask = random.next().mask || Mask(key_position() == 3 && query_position() == 0) ||
                        Mask(key_position() == 0);
      const mask::MaskLayout layout = mask::build_layout(mask, extent);
      const mask::BitTensor bits = mask::evaluate_all(mask, extent);
      for (const std::int64_t tile_k : {std::int64_t{64}, std::int64_t{128}, any_tile_k}) {
        check_tiles(layout, bits, tile_q, tile_k);
      }
    }
  }
}

TEST_CASE("structured masks have full tiles of every size") {
  const Extent extent = {.q_len = 700, .kv_len = 1000};
  for (const Mask& mask : {causal_bottom_right(), longformer(450, 40), documents({0, 300, 1000})}) {
    const mask::MaskLayout layout = mask::build_layout(mask, extent);
    const mask::BitTensor bits = mask::evaluate_all(mask, extent);
    for (const auto& [tile_q, tile_k] :
         {std::pair(16, 8), {16, 256}, {64, 64}, {128, 80}, {192, 128}, {256, 176}}) {
      check_tiles(layout, bits, tile_q, tile_k);
      const TileLists lists = derive_tiles(layout, tile_q, tile_k);
      CHECK(std::ranges::count(lists.classes, TileClass::Full) > 0);
      CHECK(std::ranges::count(lists.classes, TileClass::Part) > 0);
    }
  }
}

TEST_CASE("query tiles that see nothing come last in the order of work, yet they come") {
  const mask::MaskLayout layout =
      mask::build_layout(Mask(query_position() >= 128 && key_position() <= query_position()),
                         {.q_len = 256, .kv_len = 256});
  CHECK(derive_tiles(layout, 64, 64).order == std::vector<std::int32_t>{3, 2, 0, 1});
}

TEST_CASE("tiles of 64 are those of the layout") {
  const mask::MaskLayout layout =
      mask::build_layout(longformer(90, 3), {.q_len = 500, .kv_len = 600});
  const TileLists lists = derive_tiles(layout, 64, 64);
  CHECK(lists.row_ptr == layout.load.row_ptr);
  CHECK(lists.col_idx == layout.load.col_idx);
  CHECK(std::ranges::count(lists.classes, TileClass::Full) == std::ssize(layout.full.col_idx));
}

TEST_CASE("other tiles are refused") {
  const mask::MaskLayout layout = mask::build_layout(causal(), {.q_len = 64, .kv_len = 64});
  CHECK_THROWS_WITH_AS(derive_tiles(layout, 48, 64),
                       "mask: tiles of 48 queries; 16, 32, 64, 128, 192 and 256 can be derived",
                       GraphError);
  for (const std::int64_t tile_k : {0, 4, 65, 264, -8}) {
    CHECK_THROWS_AS(derive_tiles(layout, 64, tile_k), GraphError);
  }
  CHECK_THROWS_WITH_AS(derive_tiles(layout, 64, 12),
                       "mask: tiles of 12 keys; multiples of 8 from 8 to 256 can be derived",
                       GraphError);
}
