#include "mask/window_columns.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include "mask/bits.hpp"
#include "random_mask.hpp"

using namespace stof;
using mask::kGroup;
using mask::kGroupWords;
using mask::kOctet;
using mask::kWindow;

namespace {

// (row of the window, key of the stage), of one list.
using Seen = std::set<std::pair<std::int64_t, std::int64_t>>;

struct Octet {
  Seen seen;
  std::array<std::int64_t, kOctet> places{};

  // How often the bank that most of its keys lie in is read.
  std::int64_t turns() const {
    std::map<std::int64_t, std::set<std::int64_t>> banks;
    std::size_t most = 0;
    for (const std::int64_t place : places) {
      auto& keys = banks[place % 128];
      keys.insert(place);
      most = std::max(most, keys.size());
    }
    return static_cast<std::int64_t>(most);
  }
};

Octet octet_at(const mask::WindowColumns& lists, std::int64_t n) {
  const std::uint32_t* group = lists.words.data() + n / kGroup * kGroupWords;
  Octet octet;
  for (std::int64_t c = 0; c < kOctet; ++c) {
    octet.places[c] = group[32 + n % kGroup * 4 + c / 2] >> (c % 2 * 16) & 0xffffU;
  }
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    for (std::int64_t e = 0; e < 4; ++e) {
      if ((group[lane] >> (n % kGroup * 4 + e) & 1U) != 0) {
        octet.seen.emplace(lane / 4 + e / 2 * 8, octet.places[lane % 4 * 2 + e % 2] / 128);
      }
    }
  }
  return octet;
}

// The turns of all octets.
std::int64_t check_lists(const mask::KeyRows& rows, const mask::Extent& extent, std::int64_t planes,
                         std::int64_t stage_keys) {
  const mask::WindowColumns lists =
      mask::window_columns(rows, planes, extent.q_len, extent.kv_len, stage_keys);
  const std::int64_t windows = mask::ceil_div(extent.q_len, kWindow);
  const std::int64_t stages = mask::ceil_div(extent.kv_len, stage_keys);
  REQUIRE(std::ssize(lists.octet_ptr) == planes * windows * stages + 1);
  CHECK(std::ssize(lists.words) ==
        (mask::ceil_div(lists.octet_ptr.back(), kGroup) + 2) * kGroupWords);
  std::int64_t turns = 0;
  for (std::int64_t list = 0; list + 1 < std::ssize(lists.octet_ptr); ++list) {
    const std::int64_t plane = list / stages / windows;
    const std::int64_t first_query = list / stages % windows * kWindow;
    const std::int64_t first_key = list % stages * stage_keys;
    Seen expected;
    std::set<std::int64_t> keys;
    for (std::int64_t i = 0; i < std::min(kWindow, extent.q_len - first_query); ++i) {
      const std::int64_t row = plane * extent.q_len + first_query + i;
      for (std::int32_t at = rows.row_ptr[row]; at < rows.row_ptr[row + 1]; ++at) {
        const std::int64_t key = rows.col_idx[at] - first_key;
        if (key >= 0 && key < stage_keys) {
          expected.emplace(i, key);
          keys.insert(key);
        }
      }
    }
    Seen seen;
    for (std::int32_t n = lists.octet_ptr[list]; n < lists.octet_ptr[list + 1]; ++n) {
      const Octet octet = octet_at(lists, n);
      seen.insert(octet.seen.begin(), octet.seen.end());
      for (const std::int64_t place : octet.places) {
        CHECK(place % 128 == place / 128 % 8 * 16);
        CHECK(keys.contains(place / 128));
      }
      turns += octet.turns();
    }
    CHECK(seen == expected);
    CHECK(lists.octet_ptr[list + 1] - lists.octet_ptr[list] ==
          mask::ceil_div(std::ssize(keys), kOctet));
  }
  return turns;
}

}  // namespace

TEST_CASE("the lists of windows say which rows see which keys") {
  const mask::Extent extent = {.batch = 2, .heads = 3, .q_len = 75, .kv_len = 333};
  const Mask few = random_tokens(0.02, 7);
  const std::vector<Mask> masks = {few,
                                   causal(),
                                   strided(5),
                                   few && Mask(key_position() % 8 == 3),
                                   few && Mask(query_position() == 33),
                                   Mask(key_position() == 332),
                                   few && Mask(key_position() % 3 == head_index()),
                                   few && Mask(query_position() > 40 * batch_index())};
  for (const Mask& mask : masks) {
    INFO(mask.text());
    const mask::MaskLayout layout = mask::build_layout(mask, extent);
    for (const std::int64_t stage_keys : {64, 288, 512}) {
      check_lists(mask::key_rows(layout), extent, layout.mask_batch * layout.mask_heads,
                  stage_keys);
    }
  }
}

TEST_CASE("the keys of an octet lie in different banks where there are enough of each") {
  const mask::Extent extent = {.batch = 1, .heads = 1, .q_len = 16, .kv_len = 512};
  const auto turns = [&](const Mask& mask) {
    const mask::MaskLayout layout = mask::build_layout(mask, extent);
    return check_lists(mask::key_rows(layout), extent, 1, 512);
  };
  CHECK(turns(Mask()) == 64);
  CHECK(turns(Mask(key_position() % 16 < 8)) == 32);
  CHECK(turns(Mask(key_position() % 8 == 5)) == 64);  // eight octets, all of one bank
  CHECK(turns(random_tokens(0.01, 1)) < 20);          // ten octets
}

TEST_CASE("columns are counted as the lists have them") {
  for (const mask::Extent& extent : test::hostile_extents()) {
    test::RandomMask random(static_cast<unsigned>(3 * extent.q_len + extent.kv_len), extent);
    const Mask mask = random.next().mask || Mask(key_position() == 0 && query_position() == 0);
    INFO(mask.text(), " at ", extent.q_len, " x ", extent.kv_len);
    const mask::MaskLayout layout = mask::build_layout(mask, extent);
    const mask::KeyRows rows = mask::key_rows(layout);
    const std::int64_t planes = layout.mask_batch * layout.mask_heads;
    std::int64_t sum = 0;
    std::int64_t most = 0;
    std::int64_t span = 0;
    std::int64_t windows = 0;
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for (std::int64_t q = 0; q < extent.q_len; q += kWindow) {
        const auto begin = rows.row_ptr[plane * extent.q_len + q];
        const auto end = rows.row_ptr[plane * extent.q_len + std::min(q + kWindow, extent.q_len)];
        const std::set<std::int32_t> columns(rows.col_idx.begin() + begin,
                                             rows.col_idx.begin() + end);
        sum += std::ssize(columns);
        most = std::max<std::int64_t>(most, std::ssize(columns));
        const auto at = [&](std::int64_t row) { return plane * extent.q_len + row; };
        std::int64_t first = extent.kv_len;
        std::int64_t last = -1;
        for (std::int64_t row = q / 64 * 64; row < std::min(q / 64 * 64 + 64, extent.q_len);
             ++row) {
          if (rows.row_ptr[at(row)] < rows.row_ptr[at(row) + 1]) {
            first = std::min<std::int64_t>(first, rows.col_idx[rows.row_ptr[at(row)]]);
            last = std::max<std::int64_t>(last, rows.col_idx[rows.row_ptr[at(row) + 1] - 1]);
          }
        }
        span += last < 0 ? 0 : std::min(last / 64 * 64 + 64, extent.kv_len) - first / 64 * 64;
        ++windows;
      }
    }
    const mask::WindowCounts counts = mask::count_window_columns(layout);
    CHECK(counts.most == most);
    CHECK(counts.span == doctest::Approx(static_cast<double>(span) / static_cast<double>(windows)));
    CHECK(counts.mean == doctest::Approx(static_cast<double>(sum) / static_cast<double>(windows)));
  }
}
