#include "mask/global_local.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "global_tokens.hpp"
#include "mask/bits.hpp"
#include "random_mask.hpp"

using namespace stof;
using mask::BitTensor;
using mask::Extent;
using mask::GlobalLocal;
using mask::GlobalLocalBits;
using test::global_tokens_in_two_places;

namespace {

// Puts a mask together again as kernels do, and compares every pair.
class Checker {
 public:
  Checker(const BitTensor& bits, const GlobalLocal& split, const GlobalLocalBits& words)
      : bits_(bits), split_(split), words_(words) {}

  void check() {
    const std::int64_t boxes = split_.boxes_of_tile() + mask::ceil_div(split_.global_keys, 64);
    REQUIRE(std::ssize(words_.local) == mask::ceil_div(bits_.rows, 64) * boxes);
    REQUIRE(std::ssize(words_.global) == split_.global_tiles() * mask::ceil_div(bits_.columns, 64));
    const std::int64_t row_groups = mask::ceil_div(bits_.rows, 16);
    std::vector<bool> is_done(static_cast<std::size_t>(row_groups));
    const std::int64_t tiles = mask::ceil_div(bits_.rows, 64);
    REQUIRE(std::ssize(split_.local_status) == tiles * GlobalLocal::kTileNumbers);
    REQUIRE(std::ssize(split_.row_groups) == 4 * split_.global_tiles());
    REQUIRE(std::ssize(split_.key_groups) == 8);
    for (std::int64_t group = 0; group < row_groups; ++group) {
      const std::int32_t* const numbers = numbers_of(group / 4);
      if ((numbers[GlobalLocal::kWritten] >> group % 4 & 1) != 0) {
        is_done[group] = true;
        check_rows(group, group % 4, local_boxes(group / 4));
        check_rows(group, group % 4, local_words(group / 4));
      }
    }
    for (std::int64_t i = 0; i < std::ssize(split_.row_groups); ++i) {
      if (split_.row_groups[i] < row_groups) {
        REQUIRE(!is_done[split_.row_groups[i]]);
        is_done[split_.row_groups[i]] = true;
        check_rows(split_.row_groups[i], i % 4, global_boxes(i / 4));
        check_rows(split_.row_groups[i], i % 4, global_words(i / 4));
      }
    }
    REQUIRE(std::ranges::count(is_done, false) == 0);
  }

 private:
  struct Column {
    std::int64_t key = 0;
    const mask::LaneOrderedBitmap* bitmap = nullptr;  // null: all see it, or none
    bool all_see = false;
    std::int64_t place = 0;  // of 64
  };

  Column of_status(std::int64_t key, std::int32_t status, std::int64_t place) const {
    return {key, status < 0 ? nullptr : &split_.bitmaps[status], status == mask::kAllSeen, place};
  }

  const std::int32_t* numbers_of(std::int64_t tile) const {
    return split_.local_status.data() + tile * GlobalLocal::kTileNumbers;
  }

  std::int64_t local_columns() const {
    return std::max<std::int64_t>(64, mask::ceil_div(split_.local_keys, 32) * 32);
  }

  std::vector<Column> local_boxes(std::int64_t tile) const {
    std::vector<Column> columns;
    const std::int32_t* const status = numbers_of(tile);
    for (std::int64_t i = 0; i < local_columns(); ++i) {
      columns.push_back(of_status(split_.first_key + 64 * tile + i, status[i / 64], i % 64));
    }
    const std::int64_t global = mask::ceil_div(split_.global_keys, 32) * 32;
    for (std::int64_t i = 0; i < global; ++i) {
      columns.push_back(of_status(split_.key_groups[i / 16] * 16 + i % 16,
                                  status[GlobalLocal::kFirstPiece + i / 64], i % 64));
    }
    return columns;
  }

  std::vector<Column> global_boxes(std::int64_t tile) const {
    std::vector<Column> columns;
    const std::int64_t boxes = mask::ceil_div(bits_.rows, 64) + split_.boxes_of_tile() - 1;
    for (std::int64_t i = 0; i < boxes * 64; ++i) {
      columns.push_back(
          of_status(split_.first_key + i, split_.global_status[tile * boxes + i / 64], i % 64));
    }
    return columns;
  }

  std::vector<Column> local_words(std::int64_t tile) const {
    std::vector<Column> columns;
    const std::int64_t local = 64 * split_.boxes_of_tile();
    const std::int64_t all = local + mask::ceil_div(split_.global_keys, 64) * 64;
    for (std::int64_t i = 0; i < all; ++i) {
      const std::int64_t key = i < local ? split_.first_key + 64 * tile + i
                                         : split_.key_groups[(i - local) / 16] * 16 + i % 16;
      columns.push_back({key, &words_.local[tile * (all / 64) + i / 64], false, i % 64});
    }
    return columns;
  }

  std::vector<Column> global_words(std::int64_t tile) const {
    std::vector<Column> columns;
    const std::int64_t boxes = mask::ceil_div(bits_.columns, 64);
    for (std::int64_t i = 0; i < boxes * 64; ++i) {
      columns.push_back({i, &words_.global[tile * boxes + i / 64], false, i % 64});
    }
    return columns;
  }

  void check_rows(std::int64_t group, std::int64_t place, const std::vector<Column>& columns) {
    for (std::int64_t q = 16 * group; q < std::min(16 * group + 16, bits_.rows); ++q) {
      std::vector<bool> seen(static_cast<std::size_t>(bits_.columns));
      for (const Column& column : columns) {
        const bool is_seen = column.bitmap != nullptr
                                 ? bit(*column.bitmap, 16 * place + q % 16, column.place)
                                 : column.all_see;
        if (is_seen) {
          REQUIRE(column.key >= 0);
          REQUIRE(column.key < bits_.columns);
          REQUIRE(!seen[column.key]);
          seen[column.key] = true;
        }
      }
      for (std::int64_t key = 0; key < bits_.columns; ++key) {
        REQUIRE(seen[key] == bits_.at(0, 0, q, key));
      }
    }
  }

  static bool bit(const mask::LaneOrderedBitmap& bitmap, std::int64_t row, std::int64_t column) {
    const std::int64_t word = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    return (bitmap[word] >> (column / 8 * 4 + row % 16 / 8 * 2 + column % 2) & 1) != 0;
  }

  const BitTensor& bits_;
  const GlobalLocal& split_;
  const GlobalLocalBits& words_;
};

std::optional<GlobalLocal> split(const Mask& mask, std::int64_t q_len, std::int64_t kv_len) {
  return mask::global_local(mask::build_layout(mask, {.q_len = q_len, .kv_len = kv_len}));
}

void check(const Mask& mask, std::int64_t q_len, std::int64_t kv_len) {
  INFO(mask.text(), " at ", q_len, " x ", kv_len);
  const mask::MaskLayout layout = mask::build_layout(mask, {.q_len = q_len, .kv_len = kv_len});
  const std::optional<GlobalLocal> found = mask::global_local(layout);
  REQUIRE(found.has_value());
  const BitTensor bits = mask::evaluate_all(mask, {.q_len = q_len, .kv_len = kv_len});
  Checker(bits, *found, mask::global_local_bits(layout, *found)).check();
}

}  // namespace

TEST_CASE("windows with global tokens are put together again, each key once") {
  check(global_tokens_in_two_places(22, 256), 512, 512);
  check(global_tokens_in_two_places(45, 1024), 2048, 2048);
  check(global_tokens_in_two_places(45, 1024), 2048, 2000);
  check(longformer(20, 30), 700, 700);
  check(sliding_window(20, 20) || Mask(key_position() < 17 || key_position() == 800), 333, 901);
  check(longformer(64, 64), 901, 450);
  check(bigbird(32, 1, 1, 0, 3) && key_position() % 7 != 3, 1000, 1000);
  check(sliding_window(30, 0) || Mask(key_position() == 400), 500, 500);
  check(sliding_window(10, 10) || Mask(query_position() == 77), 300, 300);
  check(random_tokens(0.3, 5) && sliding_window(50, 60), 640, 640);
  check(random_tokens(0.3, 5) || Mask(key_position() == 0), 65, 65);
  check(Mask(key_position() == 0), 200, 1);
}

TEST_CASE("what is local and what is global") {
  const GlobalLocal found = split(global_tokens_in_two_places(32, 512), 1024, 1024).value();
  CHECK(found.first_key == -32);
  CHECK(found.local_keys == 128);
  CHECK(found.global_keys == 64);
  CHECK(found.key_groups == std::vector<std::int32_t>{0, 1, 32, 33, 64, 64, 64, 64});
  CHECK(found.row_groups == std::vector<std::int32_t>{0, 1, 32, 33});
  const auto written = [&](std::int64_t tile) {
    return found.local_status[tile * GlobalLocal::kTileNumbers + GlobalLocal::kWritten];
  };
  CHECK(written(0) == 0b1100);
  CHECK(written(1) == 0b1111);
  CHECK(written(8) == 0b1100);
  // Query tiles away from global keys see the same, and all global keys.
  const auto numbers = [&](std::int64_t tile) {
    const auto at = found.local_status.begin() + tile * GlobalLocal::kTileNumbers;
    return std::vector<std::int32_t>(at, at + 4);
  };
  CHECK(numbers(3) == numbers(12));
  CHECK(numbers(3)[3] == mask::kAllSeen);
  CHECK(found.bitmaps.size() < 16);
  // 64 keys at a time from -32 on, of which the first and the last 32 do not exist.
  REQUIRE(found.global_status.size() == 17);
  CHECK(std::ranges::count(found.global_status, mask::kAllSeen) == 15);
  CHECK(found.global_status.front() >= 0);
  CHECK(found.global_status.back() >= 0);
}

TEST_CASE("numbers of groups lie four to a word") {
  CHECK(mask::packed_groups({}) == std::array<std::int64_t, 2>{-1, -1});
  CHECK(mask::packed_groups({0, 1, 32, 33}) ==
        std::array<std::int64_t, 2>{0x0021'0020'0001'0000, -1});
  CHECK(mask::packed_groups({65'536, 70'000}) == std::array<std::int64_t, 2>{-1, -1});
  CHECK(mask::packed_groups({2, 0xfffe, 0x8000, 7, 9}) ==
        std::array<std::int64_t, 2>{0x0007'8000'fffe'0002,
                                    static_cast<std::int64_t>(0xffff'ffff'ffff'0009)});
}

TEST_CASE("other masks are no windows with global tokens") {
  CHECK_FALSE(split(Mask(), 300, 300).has_value());
  CHECK_FALSE(split(causal(), 1024, 1024).has_value());
  CHECK_FALSE(split(random_tokens(0.05, 3), 1024, 1024).has_value());
  CHECK_FALSE(split(longformer(100, 8), 1024, 1024).has_value());   // a window of 264 keys
  CHECK_FALSE(split(longformer(16, 130), 2048, 2048).has_value());  // more global keys than 128
  CHECK_FALSE(split(longformer(20, 17), 333, 901).has_value());     // keys far from all windows
  const Mask per_head = longformer(8, 8) && Mask(head_index() < 2 || key_position() < 50);
  CHECK_FALSE(
      mask::global_local(mask::build_layout(per_head, {.heads = 4, .q_len = 300, .kv_len = 300}))
          .has_value());
}

TEST_CASE("of random masks those that are taken are put together again") {
  int taken = 0;
  for (const Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(extent.q_len + 31 * extent.kv_len), extent);
    for (int i = 0; i < 20; ++i) {
      const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
      const mask::MaskLayout layout = mask::build_layout(mask, extent);
      const auto found = mask::global_local(layout);
      if (found) {
        INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
        Checker(mask::evaluate_all(mask, extent), *found, mask::global_local_bits(layout, *found))
            .check();
        ++taken;
      }
    }
  }
  CHECK(taken > 20);
}
