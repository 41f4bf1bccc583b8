#include "fusion/wide_lists.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Microseconds that a block of an H100 takes for a query tile, and for 64 keys of it, more for each
// 64 dimensions or if TMA is slow with their rows. Fitted to 49 to 56 shapes of 72 to 128
// dimensions, 160 to 4096 keys and 3 to 100 tiles for each SM, with errors of 5 % (7 in bands). On
// an H200 11 shapes of 4500 to 16384 keys take 2 % less to 7 % more, in bands 4 % less to 13 %
// more.
struct BlockTimes {
  double tile;
  double keys;
  double dims_of_keys;
  double slow_keys;
  std::int64_t dims_of_fast_rows = 16;  // or a whole number of times as many
};

constexpr BlockTimes kListsOf192 = {1.71, 0.582, 0.220, 0.076};
constexpr BlockTimes kListsOf128 = {1.27, 0.368, 0.180, 0.257};   // 128 keys at a time
constexpr BlockTimes kPairOfBands = {3.39, 0.868, 0.332, 0.449};  // two blocks on an SM
constexpr BlockTimes kLastBand = {2.66, 1.02, 0, 0};              // one that has an SM to itself
// Of 200 to 256 dimensions, fitted by hand to 62 shapes of 128 to 1500 keys on an H200.
constexpr BlockTimes kWidestListsOf128 = {6.0, 1.21, 0, 0};
constexpr BlockTimes kWidestListsOf64 = {2.4, 0.86, 0, 0.3, mask::kTile};
constexpr double kStartOfLists = 8.1;
constexpr double kStartOfBands = 6.2;

double time_of(const Use& use, const BlockTimes& times, std::int64_t key_tiles) {
  const auto width = static_cast<double>(mask::ceil_div(columns(use), 16)) / 4;
  const double slow = has_rows_of(use, times.dims_of_fast_rows) ? 0 : times.slow_keys;
  return times.tile +
         static_cast<double>(key_tiles) * (times.keys + width * times.dims_of_keys + slow);
}

// Of all tiles, of so many queries, of which the busiest SM has one after the other.
double time_of_lists(const Use& use, const BlockTimes& times, std::int64_t rows,
                     std::int64_t step_tiles) {
  const std::int64_t waves = mask::ceil_div(query_tiles(use, rows), sm_count(use));
  const std::int64_t key_tiles =
      mask::ceil_div(use.dim("kv_len"), step_tiles * mask::kTile) * step_tiles;
  return kStartOfLists + static_cast<double>(waves) * time_of(use, times, key_tiles);
}

double time_of_bands(const Use& use) {
  const std::int64_t waves = mask::ceil_div(query_tiles(use, 2 * mask::kTile), sm_count(use));
  const std::int64_t key_tiles = mask::ceil_div(use.dim("kv_len"), mask::kTile);
  const std::int64_t pairs = waves / 2;
  const std::int64_t left = waves % 2;
  return kStartOfBands + static_cast<double>(pairs) * time_of(use, kPairOfBands, key_tiles) +
         static_cast<double>(left) * time_of(use, kLastBand, key_tiles);
}

constexpr std::int64_t kTimedAbove = 192;  // keys
constexpr std::int64_t kTimedUpTo = 4096;
constexpr double kFullWaves = 1.25;  // places for each head, at most

// Whether heads have nearly as many dimensions as bands take, or as many.
bool has_most_columns(const Use& use) {
  constexpr std::int64_t kColumns = 112;
  return columns(use) > kColumns;
}

// As was timed.
bool has_many_tiles(const Use& use) {
  constexpr double kFewestTiles = 2;  // of 64 queries, for each SM
  constexpr std::int64_t kMostKeysTimed = 16384;
  return use.dim("q_len") > 2 * mask::kTile && use.dim("kv_len") > kTimedAbove &&
         use.dim("kv_len") <= kMostKeysTimed && tiles_per_sm(use) > kFewestTiles;
}

// Whether each SM has one tile of 128 queries at most, and two of 64. One block then takes 4 to
// 20 % less than two of 64 queries or parts of 192, in 12 of 14 shapes on an H200; 5 % more of 640
// keys. Heads that share key heads were not timed.
bool has_a_tile_for_each_sm(const Use& use) {
  constexpr std::int64_t kKeys = 900;
  constexpr std::int64_t kKeysOfLessWide = 1024;
  const std::int64_t keys = use.dim("kv_len");
  return use.dim("q_len") > 2 * mask::kTile && use.dim("heads") == use.dim("kv_heads") &&
         tiles_per_sm(use) > 1 && query_tiles(use, 2 * mask::kTile) <= sm_count(use) &&
         keys >= (has_most_columns(use) ? kKeys : kKeysOfLessWide) && keys <= kTimedUpTo;
}

// Whether heads have one tile of 128 queries each, and are more than two for each SM: up to 20 %
// less in 28 shapes on an H200, one of which has heads that share key heads, where two bands at a
// time do as well for two.
bool has_many_single_tiles(const Use& use) {
  return has_many_heads_of_128(use) && use.dim("kv_len") > kTimedAbove &&
         use.dim("kv_len") <= kTimedUpTo;
}

// Whether heads are a tile of 192 queries each, of which the last wave leaves few places. Of 10
// such shapes all take 7 to 24 % less than kernels that have all keys of a head at once.
bool has_tiles_of_192(const Use& use) {
  const auto is_one = [](std::int64_t length) { return length > 128 && length <= 192; };
  const std::int64_t heads = use.dim("batch") * use.dim("heads");
  return is_one(use.dim("q_len")) && is_one(use.dim("kv_len")) && heads > sm_count(use) &&
         !leaves_places(heads, sm_count(use), kFullWaves);
}

// Whether causal rows are ones that TMA is slow with, which tiles of 192 queries read least often:
// 2 to 23 % less in 12 shapes. Fewer tiles do not balance each other, 25 % more of 1.2 for each SM;
// of shorter rows too much of the last tile is empty, 7 % more of 600 queries.
bool has_slow_causal_rows(const Use& use, const mask::Band& band) {
  constexpr std::int64_t kShort = 640;
  constexpr std::int64_t kLong = 6144;
  const bool is_causal =
      band.first <= 1 - use.dim("q_len") && band.end == 1 && use.dim("q_len") == use.dim("kv_len");
  return is_causal && !has_rows_of(use, 16) && use.dim("q_len") >= kShort &&
         use.dim("kv_len") <= kLong && 2 * query_tiles(use, 3 * mask::kTile) > 5 * sm_count(use);
}

// Whether queries and keys of a head are more than a tile of 64, and no more than one of 128.
bool has_tile_of_128(const Use& use) {
  return mask::ceil_div(use.dim("q_len"), mask::kTile) == 2 &&
         mask::ceil_div(use.dim("kv_len"), mask::kTile) == 2;
}

// Whether lists of such heads, of which a block has one after the other, take less than bands, by
// times on an H200: 4 to 16 % where all is seen and heads are more than SMs by a tenth, 6 to 9 % of
// others with an open side where that leaves no SM without a head for long. Else they take 1 to
// 18 % more. Where there are lengths, or wider heads, there is no band to be faster than.
bool are_lists_of_heads_faster(const Use& use, const mask::Band& band) {
  constexpr double kManyTiles = 6;  // for each SM
  constexpr std::int64_t kWidestOfBands = 128;
  if (tiles_per_sm(use) >= kManyTiles) {
    return true;
  }
  const std::int64_t heads = use.dim("batch") * use.dim("heads");
  return !use.ports.contains("kv_lengths") && columns(use) <= kWidestOfBands &&
         10 * heads > 11 * sm_count(use) && has_open_side(use, band) &&
         (sees_all(use, band) || !leaves_places(heads, sm_count(use)));
}

KernelConfig list_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t slots,
                          std::int64_t query_slots = 2) {
  return KernelConfig{{"tile_q", tile_q},   {"tile_k", tile_k}, {"slots", slots},
                      {"blocks_per_sm", 1}, {"overlap", 1},     {"query_slots", query_slots}};
}

// Of 128 queries. Steps of 64 keys are faster where rows are short and waves are full, and those
// of 128 dimensions where an SM has but one block.
KernelConfig lists_of_128(bool has_short_steps) {
  return has_short_steps ? list_setting(128, 64, 8) : list_setting(128, 128, 4);
}

// Of 192 queries.
bool are_faster_without_overlap(const Use& use) {
  constexpr std::int64_t kColumns = 96;
  return use.dim("kv_len") > kTimedUpTo && columns(use) <= kColumns;
}
KernelConfig lists_of_192(bool overlap) {
  KernelConfig config = overlap ? list_setting(192, 64, 6) : list_setting(192, 128, 3);
  config.at("overlap") = overlap ? 1 : 0;
  return config;
}

// Of more than 192 dimensions, of which an SM has one block, of 64 or 128 queries: 0.4 % from the
// faster one in the mean of 62 shapes. Few queries are another kernel's.
std::optional<KernelConfig> widest_setting(const Use& use) {
  constexpr std::int64_t kFewestKeysTimed = 128;
  constexpr std::int64_t kMostKeysTimed = 1536;
  if (has_one_tile(use) || use.dim("kv_len") < kFewestKeysTimed ||
      use.dim("kv_len") > kMostKeysTimed || tiles_per_sm(use) < 1) {
    return std::nullopt;
  }
  const double of_128 = time_of_lists(use, kWidestListsOf128, 2 * mask::kTile, 1);
  const double of_64 = time_of_lists(use, kWidestListsOf64, mask::kTile, 1);
  return of_128 < of_64 ? list_setting(128, 64, 4, 1) : list_setting(64, 64, 4);
}

// Whichever takes least, by the times above, of tiles of 192 and 128 queries; nothing if bands do.
std::optional<KernelConfig> setting_of_many_tiles(const Use& use) {
  constexpr double kWithoutOverlap = 0.95;
  if (!has_many_tiles(use)) {
    return std::nullopt;
  }
  const bool overlap = !are_faster_without_overlap(use);
  const double of_192 =
      (overlap ? 1 : kWithoutOverlap) * time_of_lists(use, kListsOf192, 3 * mask::kTile, 1);
  // Of more keys they take up to 9 % longer than that.
  const double of_128 = use.dim("kv_len") > kTimedUpTo
                            ? std::numeric_limits<double>::infinity()
                            : time_of_lists(use, kListsOf128, 2 * mask::kTile, 2);
  if (time_of_bands(use) <= std::min(of_192, of_128)) {
    return std::nullopt;
  }
  return of_192 < of_128 ? lists_of_192(overlap) : lists_of_128(false);
}

// Whether heads of four tiles of keys, the last of them half empty at least, are more than SMs: 2
// to 5 % less in 10 shapes on an H200 than with all keys of a head at once, which takes 4 to 22 %
// less of more keys.
bool has_three_tiles_and_a_half(const Use& use) {
  constexpr std::int64_t kHalf = mask::kTile / 2;
  const auto are_three = [](std::int64_t length) {
    return length > 3 * mask::kTile && length <= 3 * mask::kTile + kHalf;
  };
  return are_three(use.dim("q_len")) && are_three(use.dim("kv_len")) &&
         use.dim("batch") * use.dim("heads") > sm_count(use);
}

}  // namespace

bool may_be_lists_of_short_heads(const Use& use) {
  const bool has_one_tile = use.dim("kv_len") <= 3 * mask::kTile;
  return has_one_tile ? !has_rows_of(use, 2 * mask::kTile) : has_three_tiles_and_a_half(use);
}

std::optional<KernelConfig> list_setting_for_wide_heads(const Use& use, const mask::Band& band) {
  constexpr std::int64_t kMostColumns = 128;
  constexpr std::int64_t kColumnsOfWidest = 192;
  constexpr std::int64_t kKeysOfShortSteps = 1024;
  const std::int64_t narrower = std::min(use.dim("head_dim"), use.dim("value_dim"));
  const bool has_lengths = use.ports.contains("kv_lengths");
  if (narrower > kColumnsOfWidest && sees_all(use, band) && !has_lengths) {
    return widest_setting(use);
  }
  if (has_tile_of_128(use) && are_lists_of_heads_faster(use, band)) {
    return list_setting(128, 64, 4);
  }
  if (has_lengths || columns(use) > kMostColumns || narrower <= mask::kTile) {
    return std::nullopt;
  }
  if (has_slow_causal_rows(use, band)) {
    return lists_of_192(true);
  }
  if (!sees_all(use, band)) {
    return std::nullopt;
  }
  if (has_tiles_of_192(use)) {
    return lists_of_192(true);
  }
  if (has_three_tiles_and_a_half(use)) {
    const std::int64_t heads = use.dim("batch") * use.dim("heads");
    return lists_of_128(!leaves_places(heads, sm_count(use), kFullWaves));
  }
  if (has_a_tile_for_each_sm(use)) {
    return lists_of_128(has_most_columns(use));
  }
  if (has_many_single_tiles(use)) {
    return lists_of_128(use.dim("kv_len") <= kKeysOfShortSteps);
  }
  return setting_of_many_tiles(use);
}

}  // namespace stof::fusion
