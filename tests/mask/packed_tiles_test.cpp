#include "mask/packed_tiles.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include "mask/bits.hpp"
#include "random_mask.hpp"

using namespace stof;
using mask::BitTensor;
using mask::Extent;
using mask::PackedTiles;

namespace {

constexpr std::int32_t kNoRows = 65535;
constexpr std::int32_t kNoKeys = 16383;

std::int32_t half(const std::vector<std::int32_t>& numbers, std::int64_t index) {
  return numbers[index / 2] >> (index % 2 * 16) & 0xffff;
}

// Unpacks tiles as a kernel does, and compares every pair with the mask.
class Checker {
 public:
  Checker(const BitTensor& bits, PackedTiles packed) : bits_(bits), packed_(std::move(packed)) {}

  void check() {
    const mask::AttentionTiles& lists = packed_.lists;
    const std::int64_t plane_tiles = mask::ceil_div(bits_.rows, lists.tile_q);
    const std::int64_t count = bits_.batch * bits_.heads * plane_tiles;
    REQUIRE(std::ssize(lists.row_ptr) == count + 1);
    REQUIRE(std::ssize(lists.order) == count);
    REQUIRE(std::ssize(packed_.rows) * 32 == count * lists.tile_q);
    REQUIRE(std::ssize(packed_.keys) == 2 * lists.row_ptr.back());
    REQUIRE(std::ssize(lists.tile_bitmap) == lists.row_ptr.back() * lists.parts());
    std::set<std::pair<std::int64_t, std::int32_t>> done;  // row groups by plane
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t plane = lists.order[r] / plane_tiles;
      const std::int64_t length = lists.row_ptr[r + 1] - lists.row_ptr[r];
      REQUIRE((r == 0 || length <= lists.row_ptr[r] - lists.row_ptr[r - 1]));
      const std::vector<std::int32_t> keys = keys_of(lists.row_ptr[r], lists.row_ptr[r + 1]);
      for (std::int64_t i = 0; i < lists.tile_q / 16; ++i) {
        const std::int32_t rows = half(packed_.rows, r * lists.tile_q / 16 + i);
        if (rows == kNoRows) {
          continue;
        }
        REQUIRE(done.emplace(plane, rows).second);
        for (std::int64_t q = 16 * rows; q < std::min<std::int64_t>(bits_.rows, 16 * rows + 16);
             ++q) {
          check_row(plane, q, r, 16 * i + q % 16, keys);
        }
      }
    }
    REQUIRE(std::ssize(done) == bits_.batch * bits_.heads * mask::ceil_div(bits_.rows, 16));
  }

 private:
  // The key of the first column of every 16, by the boxes that are copied.
  std::vector<std::int32_t> keys_of(std::int64_t first_entry, std::int64_t end_entry) const {
    std::vector<std::int32_t> keys;
    for (std::int64_t entry = first_entry; entry < end_entry; ++entry) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int32_t box = half(packed_.keys, 4 * entry + i);
        const std::int32_t size = box >> 14;
        if (size == 3) {
          REQUIRE(i == 0);
          REQUIRE((box & 0x3fff) + 3 < mask::ceil_div(bits_.columns, 16));
        } else {
          REQUIRE((size == 1 || (size == 0 && half(packed_.keys, 4 * entry) >> 14 == 3)));
        }
        keys.push_back(size == 0                   ? keys.back() + 16
                       : (box & 0x3fff) == kNoKeys ? -1
                                                   : 16 * (box & 0x3fff));
      }
    }
    return keys;
  }

  void check_row(std::int64_t plane, std::int64_t q, std::int64_t r, std::int64_t row,
                 const std::vector<std::int32_t>& keys) {
    const mask::AttentionTiles& lists = packed_.lists;
    std::vector<bool> seen(static_cast<std::size_t>(bits_.columns));
    for (std::int64_t column = 0; column < 16 * std::ssize(keys); ++column) {
      const std::int64_t entry = lists.row_ptr[r] + column / 64;
      const std::int32_t status = lists.tile_bitmap[entry * lists.parts() + row / 64];
      const bool is_seen = status == mask::kAllSeen ||
                           (status >= 0 && bit(packed_.bitmaps[status], row % 64, column % 64));
      if (is_seen) {
        const std::int64_t key = keys[column / 16] + column % 16;
        REQUIRE(keys[column / 16] >= 0);
        REQUIRE(key < bits_.columns);
        REQUIRE(!seen[key]);
        seen[key] = true;
      }
    }
    for (std::int64_t key = 0; key < bits_.columns; ++key) {
      REQUIRE(seen[key] == bits_.at(plane / bits_.heads, plane % bits_.heads, q, key));
    }
  }

  static bool bit(const mask::LaneOrderedBitmap& bitmap, std::int64_t row, std::int64_t column) {
    const std::int64_t word = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    return (bitmap[word] >> (column / 8 * 4 + row % 16 / 8 * 2 + column % 2) & 1) != 0;
  }

  const BitTensor& bits_;
  PackedTiles packed_;
};

PackedTiles packed(const Mask& mask, std::int64_t length, std::int64_t tile_q) {
  return mask::packed_tiles(mask::build_layout(mask, {.q_len = length, .kv_len = length}), tile_q);
}

}  // namespace

TEST_CASE("packed tiles hold what random masks say, each row once") {
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + 31 * extent.kv_len), extent);
    for (const std::int64_t tile_q : {64, 128, 192}) {
      const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
      INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len, " in tiles of ", tile_q);
      const BitTensor bits = mask::evaluate_all(mask, extent);
      Checker(bits, mask::packed_tiles(mask::build_layout(mask, extent), tile_q)).check();
    }
  }
}

TEST_CASE("rows that see all are packed together, and columns that are seen by four groups") {
  // 32 global rows and columns, and a window of 32 to each side.
  const Mask global =
      sliding_window(32, 32) || Mask(query_position() < 32 || key_position() < 32 ||
                                     (query_position() >= 512 && query_position() < 544) ||
                                     (key_position() >= 512 && key_position() < 544));
  const PackedTiles tiles = packed(global, 1024, 64);
  CHECK(half(tiles.rows, 0) == 0);
  CHECK(half(tiles.rows, 1) == 1);
  CHECK(half(tiles.rows, 2) == 32);
  CHECK(half(tiles.rows, 3) == 33);
  CHECK(tiles.lists.row_ptr[1] == 16);
  CHECK(tiles.lists.row_ptr[2] == 19);  // 128 keys of the window, 32 and 32: three entries
  CHECK(tiles.lists.row_ptr.back() == 16 + 15 * 3);
}

TEST_CASE("a mask that is dense has the tiles of 64 that it had") {
  const PackedTiles tiles = packed(Mask(), 256, 128);
  CHECK(tiles.lists.row_ptr == std::vector<std::int32_t>{0, 4, 8});
  CHECK(tiles.lists.tile_bitmap == std::vector<std::int32_t>(16, mask::kAllSeen));
  CHECK(tiles.bitmaps.empty());
}
