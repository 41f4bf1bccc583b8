#include "fusion/wide_lists.hpp"

#include <algorithm>
#include <cstdint>

#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Microseconds that a block of an H100 takes for a query tile, and for 64 keys of it, more for each
// 64 dimensions or if TMA is slow with their rows. Fitted to 49 to 56 shapes of 72 to 128
// dimensions, 160 to 4096 keys and 3 to 100 tiles for each SM, with errors of 5 % (7 in bands).
struct BlockTimes {
  double tile;
  double keys;
  double dims_of_keys;
  double slow_keys;
};

constexpr BlockTimes kListsOf192 = {1.71, 0.582, 0.220, 0.076};
constexpr BlockTimes kListsOf128 = {1.27, 0.368, 0.180, 0.257};   // 128 keys at a time
constexpr BlockTimes kPairOfBands = {3.39, 0.868, 0.332, 0.449};  // two blocks on an SM
constexpr BlockTimes kLastBand = {2.66, 1.02, 0, 0};              // one that has an SM to itself
constexpr double kStartOfLists = 8.1;
constexpr double kStartOfBands = 6.2;

double time_of(const Use& use, const BlockTimes& times, std::int64_t key_tiles) {
  const auto width = static_cast<double>(mask::ceil_div(columns(use), 16)) / 4;
  const double slow = has_rows_of(use, 16) ? 0 : times.slow_keys;
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

// As was timed.
bool has_many_tiles(const Use& use) {
  constexpr double kFewestTiles = 3;  // of 64 queries, for each SM
  constexpr std::int64_t kFewKeys = 192;
  constexpr std::int64_t kManyKeys = 4096;
  return use.dim("q_len") > 2 * mask::kTile && use.dim("kv_len") > kFewKeys &&
         use.dim("kv_len") <= kManyKeys && tiles_per_sm(use) >= kFewestTiles;
}

// Whether heads are a tile of 192 queries each, of which the last wave leaves few places. Of 10
// such shapes all take 7 to 24 % less than kernels that have all keys of a head at once.
bool has_tiles_of_192(const Use& use) {
  constexpr double kMostPlaces = 1.25;  // for each head
  const auto is_one = [](std::int64_t length) { return length > 128 && length <= 192; };
  const std::int64_t heads = use.dim("batch") * use.dim("heads");
  return is_one(use.dim("q_len")) && is_one(use.dim("kv_len")) && heads > sm_count(use) &&
         !leaves_places(heads, sm_count(use), kMostPlaces);
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

KernelConfig list_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t slots) {
  return KernelConfig{{"tile_q", tile_q},   {"tile_k", tile_k}, {"slots", slots},
                      {"blocks_per_sm", 1}, {"overlap", 1},     {"query_slots", 2}};
}

}  // namespace

std::optional<KernelConfig> list_setting_for_wide_heads(const Use& use, const mask::Band& band) {
  constexpr std::int64_t kMostColumns = 128;
  if (has_tile_of_128(use) && are_lists_of_heads_faster(use, band)) {
    return list_setting(128, 64, 4);
  }
  if (use.ports.contains("kv_lengths") || columns(use) > kMostColumns ||
      std::min(use.dim("head_dim"), use.dim("value_dim")) <= mask::kTile) {
    return std::nullopt;
  }
  const KernelConfig lists_of_192 = list_setting(192, 64, 6);
  if (has_slow_causal_rows(use, band) || (sees_all(use, band) && has_tiles_of_192(use))) {
    return lists_of_192;
  }
  if (!sees_all(use, band) || !has_many_tiles(use)) {
    return std::nullopt;
  }
  const double of_192 = time_of_lists(use, kListsOf192, 3 * mask::kTile, 1);
  const double of_128 = time_of_lists(use, kListsOf128, 2 * mask::kTile, 2);
  if (time_of_bands(use) <= std::min(of_192, of_128)) {
    return std::nullopt;
  }
  return of_192 < of_128 ? lists_of_192 : list_setting(128, 128, 4);
}

}  // namespace stof::fusion
