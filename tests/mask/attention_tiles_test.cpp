#include "mask/attention_tiles.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "random_mask.hpp"
#include "stof/error.hpp"

using namespace stof;
using mask::AttentionTiles;
using mask::BitTensor;
using mask::Extent;
using mask::MaskLayout;

namespace {

using Indices = std::vector<std::int32_t>;

// Queries [q, q + rows) and the 64 keys from k on.
struct Tile {
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t q = 0;
  std::int64_t rows = 0;
  std::int64_t k = 0;
};

// What must be written of the tile, -3 where that is a bitmap.
std::int32_t expected_code(const BitTensor& bits, const Tile& tile) {
  std::int64_t seen = 0;
  std::int64_t existing = 0;
  for (std::int64_t i = tile.q; i < std::min(bits.rows, tile.q + tile.rows); ++i) {
    for (std::int64_t j = tile.k; j < std::min(bits.columns, tile.k + 64); ++j) {
      ++existing;
      seen += bits.at(tile.b, tile.h, i, j) ? 1 : 0;
    }
  }
  return seen == 0 ? mask::kNoneSeen : seen == existing ? mask::kAllSeen : -3;
}

// Whether each bit of the lane-ordered bitmap is that of its row and column.
bool bits_agree(const mask::LaneOrderedBitmap& bitmap, const BitTensor& bits, const Tile& tile) {
  const std::int64_t first = tile.q / 64 * 64;
  for (std::int64_t i = tile.q; i < std::min(bits.rows, tile.q + tile.rows); ++i) {
    for (std::int64_t j = tile.k; j < std::min(bits.columns, tile.k + 64); ++j) {
      const std::int64_t row = i - first;
      const std::int64_t column = j - tile.k;
      const std::int64_t word = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const std::int64_t bit = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      if ((bitmap[word] >> bit & 1) != (bits.at(tile.b, tile.h, i, j) ? 1U : 0U)) {
        return false;
      }
    }
  }
  return true;
}

class Checker {
 public:
  Checker(const MaskLayout& layout, const BitTensor& bits, std::int64_t tile_q)
      : bits_(bits),
        tiles_(mask::attention_tiles(layout, tile_q)),
        bitmaps_(mask::lane_ordered_bitmaps(layout)) {}

  void check() {
    const std::int64_t q_tiles = (bits_.rows + tiles_.tile_q - 1) / tiles_.tile_q;
    const std::int64_t count = bits_.batch * bits_.heads * q_tiles;
    REQUIRE(std::ssize(tiles_.row_ptr) == count + 1);
    REQUIRE(tiles_.row_ptr.front() == 0);
    for (std::int64_t r = 0; r < count; ++r) {
      check_query_tile(r, {.b = r / q_tiles / bits_.heads,
                           .h = r / q_tiles % bits_.heads,
                           .q = r % q_tiles * tiles_.tile_q});
    }
    REQUIRE(at_ == std::ssize(tiles_.tile_col));
    REQUIRE(at_ * tiles_.parts() == std::ssize(tiles_.tile_bitmap));
    check_order(count);
  }

 private:
  void check_query_tile(std::int64_t r, Tile tile) {
    const std::int64_t q = tile.q;
    tile.rows = std::min<std::int64_t>(tiles_.tile_q, 64);
    for (tile.k = 0; tile.k < bits_.columns; tile.k += 64) {
      Indices codes;
      for (std::int64_t s = 0; s < tiles_.parts(); ++s) {
        tile.q = q + 64 * s;
        codes.push_back(expected_code(bits_, tile));
      }
      if (std::ranges::all_of(codes, [](auto code) { return code == mask::kNoneSeen; })) {
        continue;
      }
      REQUIRE(at_ < tiles_.row_ptr[r + 1]);
      REQUIRE(tiles_.tile_col[at_] == tile.k / 64);
      for (std::int64_t s = 0; s < tiles_.parts(); ++s) {
        tile.q = q + 64 * s;
        check_code(tiles_.tile_bitmap[at_ * tiles_.parts() + s], codes[s], tile);
      }
      ++at_;
    }
    REQUIRE(at_ == tiles_.row_ptr[r + 1]);
  }

  void check_code(std::int32_t code, std::int32_t expected, const Tile& tile) {
    if (expected != -3) {
      REQUIRE(code == expected);
      return;
    }
    REQUIRE(code >= 0);
    REQUIRE(code < std::ssize(bitmaps_));
    REQUIRE(bits_agree(bitmaps_[code], bits_, tile));
  }

  void check_order(std::int64_t count) {
    const auto length = [&](std::int32_t r) { return tiles_.row_ptr[r + 1] - tiles_.row_ptr[r]; };
    REQUIRE(std::ssize(tiles_.order) == count);
    for (std::int64_t i = 1; i < count; ++i) {
      const std::int32_t before = tiles_.order[i - 1];
      const std::int32_t after = tiles_.order[i];
      REQUIRE(
          (length(before) > length(after) || (length(before) == length(after) && before < after)));
    }
  }

  const BitTensor& bits_;
  AttentionTiles tiles_;
  std::vector<mask::LaneOrderedBitmap> bitmaps_;
  std::int64_t at_ = 0;
};

}  // namespace

TEST_CASE("kernels find what the mask says in the tiles of random masks") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + 17 * extent.kv_len), extent);
    for (const std::int64_t tile_q : {16, 32, 64, 128, 192, 256}) {
      const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
      INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len, " in tiles of ", tile_q);
      Checker(mask::build_layout(mask, extent), mask::evaluate_all(mask, extent), tile_q).check();
    }
  }
}

TEST_CASE("each tile of random masks has a bitmap of its own, seen or not") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(3 * extent.q_len + extent.kv_len), extent);
    const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
    INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
    const MaskLayout layout = mask::build_layout(mask, extent);
    const BitTensor bits = mask::evaluate_all(mask, extent);
    const auto all = mask::bitmaps_of_all_tiles(layout);
    REQUIRE(std::ssize(all) == layout.row_count() * layout.tile_cols);
    for (std::int64_t n = 0; n < std::ssize(all); ++n) {
      const std::int64_t row = n / layout.tile_cols;
      const std::int64_t plane = row / layout.tile_rows;
      const Tile tile{.b = plane / layout.mask_heads,
                      .h = plane % layout.mask_heads,
                      .q = row % layout.tile_rows * 64,
                      .rows = 64,
                      .k = n % layout.tile_cols * 64};
      REQUIRE(bits_agree(all[n], bits, tile));
    }
  }
}

TEST_CASE("causal attention in tiles of 64 and 128 queries") {
  const MaskLayout layout = mask::build_layout(causal(), {.q_len = 192, .kv_len = 192});
  CHECK(mask::attention_tiles(layout, 64) == AttentionTiles{.tile_q = 64,
                                                            .row_ptr = {0, 1, 3, 6},
                                                            .tile_col = {0, 0, 1, 0, 1, 2},
                                                            .tile_bitmap = {0, -1, 0, -1, -1, 0},
                                                            .order = {2, 1, 0}});
  // The last query tile has 64 rows; of the others none exists, so none is seen.
  CHECK(mask::attention_tiles(layout, 128) ==
        AttentionTiles{.tile_q = 128,
                       .row_ptr = {0, 2, 5},
                       .tile_col = {0, 1, 0, 1, 2},
                       .tile_bitmap = {0, -1, -2, 0, -1, -2, -1, -2, 0, -2},
                       .order = {1, 0}});
}

TEST_CASE("a query tile of 16 rows of a part tile may be full or empty") {
  const MaskLayout layout = mask::build_layout(Mask(query_position() < 20 && key_position() < 64),
                                               {.q_len = 64, .kv_len = 128});
  CHECK(mask::attention_tiles(layout, 16) == AttentionTiles{.tile_q = 16,
                                                            .row_ptr = {0, 1, 2, 2, 2},
                                                            .tile_col = {0, 0},
                                                            .tile_bitmap = {-1, 0},
                                                            .order = {0, 1, 2, 3}});
}

TEST_CASE("other query tiles are refused") {
  const MaskLayout layout = mask::build_layout(causal(), {.q_len = 64, .kv_len = 64});
  CHECK_THROWS_AS(mask::attention_tiles(layout, 48), GraphError);
}
