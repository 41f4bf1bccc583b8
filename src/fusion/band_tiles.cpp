#include "fusion/band_tiles.hpp"

#include <algorithm>
#include <cstdint>

#include "cost/model.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/band_order.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

KernelConfig band_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t step,
                          std::int64_t stages, std::int64_t blocks_per_sm,
                          std::int64_t overlap = 0) {
  return KernelConfig{{"tile_q", tile_q},   {"tile_k", tile_k},
                      {"step", step},       {"key_groups", stages == 1 ? 1 : tile_k / step},
                      {"stages", stages},   {"blocks_per_sm", blocks_per_sm},
                      {"overlap", overlap}, {"order", 0},
                      {"late_values", 0}};
}

// Two warp groups take turns at the keys of a tile. Such a block has an SM to itself, or shares it
// with one more; wide heads then leave room for one warp group each.
KernelConfig lone_band_setting(bool is_wide) {
  return band_setting(64, 128, 64, is_wide ? 3 : 4, 1, 1);
}
KernelConfig overlapped_band_setting() {  // of one warp group
  return band_setting(64, 64, 64, 3, 2, 1);
}
KernelConfig shared_band_setting(bool is_wide) {
  return is_wide ? overlapped_band_setting() : band_setting(64, 128, 64, 3, 2, 1);
}

// Where there are many: tiles of one warp group without overlap, which leaves room for twice as
// many, and larger ones, which read less.
KernelConfig small_band_setting() {
  return band_setting(64, 64, 64, 2, 4);
}
KernelConfig large_band_setting(bool is_wide) {
  return band_setting(128, 64, 64, 2, is_wide ? 1 : 2);
}

// Both with steps of 128 keys.
KernelConfig small_band_of_large_steps() {
  return band_setting(64, 128, 128, 2, 3);
}
KernelConfig large_band_of_large_steps() {
  return band_setting(128, 128, 128, 2, 2);
}

// Large ones that are few, of which each overlaps its products with its probabilities.
KernelConfig large_overlapped_band_setting(std::int64_t blocks_per_sm = 1) {
  return band_setting(128, 64, 64, 4, blocks_per_sm, 1);
}

constexpr std::int64_t kThinDims = 32;
constexpr std::int64_t kColumnsOfLargeTiles = 112;  // at most, where uneven rows are long

// Tiles of 128 queries; and whether two blocks of them an SM leave places.
std::int64_t large_tiles(const Use& use) {
  return query_tiles(use, 2 * mask::kTile);
}
bool do_large_tiles_leave_places(const Use& use) {
  return leaves_places(large_tiles(use), 2 * sm_count(use));
}

// TMA is slow with rows of keys that are odd multiples of 16 bytes.
bool has_slow_rows(const Use& use) {
  return !has_rows_of(use, 16);
}
// Those of which little is read anyway were not timed.
bool has_thin_rows(const Use& use) {
  return columns(use) <= kThinDims;
}

// Whether large tiles, which read half as much, are faster than two blocks of 64 queries an SM
// where all is seen: by 3 to 33 % on an H200, where rows are slow or, of more than 64 dimensions,
// no multiple of 128 bytes; of 32, 48, 64 or 128 dimensions they are up to 15 % slower.
bool has_reads_to_save(const Use& use) {
  return sees_all(use, band_of(use)) && !has_thin_rows(use) &&
         !has_rows_of(use, has_wide_heads(use) ? 64 : 16) && large_tiles(use) <= sm_count(use);
}

// Whether lists are faster where few tiles see all, by times on an H200 and an H100: of slow rows
// where keys are many (9 to 32 %), and where tiles are more than two for each SM, of narrow heads
// with slow rows (9 to 17 %) and of wide ones whose tiles of 192 queries have an SM each (up to 12
// %, but 3 % more in two of 26 shapes).
bool are_lists_of_few_faster(const Use& use, std::int64_t keys, double per_sm) {
  constexpr std::int64_t kManyKeys = 512;
  constexpr std::int64_t kLongSlowRow = 1280;
  if (!sees_all(use, band_of(use)) || has_one_tile(use) || has_thin_rows(use)) {
    return false;
  }
  if (per_sm <= 2) {
    return has_slow_rows(use) && keys > kLongSlowRow;
  }
  return has_wide_heads(use) ? query_tiles(use, 3 * mask::kTile) <= sm_count(use)
                             : has_slow_rows(use) && keys >= kManyKeys;
}

// Whether one warp group is faster than two that share the keys of a tile, since all it takes of
// queries is 16 rows: 2 to 13 % on an H100, with 257 to 512 keys of 48 and 64 dimensions.
bool is_one_group_faster(const Use& use, std::int64_t keys, double per_sm) {
  constexpr std::int64_t kFewest = 256;
  constexpr std::int64_t kMost = 512;
  constexpr double kFewestTiles = 0.75;  // for each SM; fewer share the keys out
  return use.dim("q_len") <= cost::kFewQueryRows && !has_wide_heads(use) && !has_slow_rows(use) &&
         !has_thin_rows(use) && keys == use.dim("kv_len") && keys > kFewest && keys <= kMost &&
         per_sm > kFewestTiles;
}

// Whether large tiles are of a long window, and a second wave of them would leave most SMs idle.
bool do_large_windows_idle(const Use& use) {
  constexpr double kMostPlaces = 1.45;  // for each large tile
  return !has_open_side(use, band_of(use)) &&
         leaves_places(large_tiles(use), sm_count(use), kMostPlaces);
}

// Of tiles with as many keys each, `per_sm` of them for each SM.
std::optional<KernelConfig> few_even_tiles_config(const Use& use, std::int64_t keys, double per_sm,
                                                  bool is_wide) {
  if (are_lists_of_few_faster(use, keys, per_sm)) {
    return std::nullopt;
  }
  if (is_one_group_faster(use, keys, per_sm)) {
    return overlapped_band_setting();
  }
  if (per_sm <= 1) {
    return is_wide || keys > 512 ? lone_band_setting(is_wide) : shared_band_setting(is_wide);
  }
  if (per_sm <= 2) {
    return keys > (is_wide ? 1024 : 8192) ? std::nullopt
           : has_reads_to_save(use)       ? std::optional(large_overlapped_band_setting())
                                          : std::optional(shared_band_setting(is_wide));
  }
  if (keys > (is_wide && has_one_tile(use) ? 512 : 1024)) {
    return std::nullopt;
  }
  const bool is_large = (is_wide || has_slow_rows(use)) && !has_one_tile(use);
  return is_large && !(is_wide && do_large_windows_idle(use)) ? large_band_setting(is_wide)
                                                              : overlapped_band_setting();
}

// Whether large tiles that overlap are faster than ones of 64 queries where uneven tiles are more
// than two for each SM: of heads of fewer than 128 dimensions by up to 28 % on an H200, where keys
// are many or rows slow.
bool are_large_uneven_tiles_best(const Use& use, std::int64_t keys) {
  constexpr std::int64_t kFewKeys = 512;
  constexpr std::int64_t kManyKeys = 768;
  constexpr double kMostPlaces = 1.5;  // for each large tile
  const double per_sm = tiles_per_sm(use);
  if (has_rows_of(use, 2 * mask::kTile) || keys <= kFewKeys) {
    return false;
  }
  return per_sm <= 3 ||
         (has_slow_rows(use) ? per_sm <= 4
                             : keys > kManyKeys && columns(use) <= kColumnsOfLargeTiles &&
                                   !leaves_places(large_tiles(use), sm_count(use), kMostPlaces));
}

// Of more than two tiles for each SM, some of which have few keys.
KernelConfig uneven_tiles_config(const Use& use, std::int64_t keys, bool is_wide) {
  constexpr std::int64_t kShort = 256;
  constexpr std::int64_t kLongNarrow = 1024;
  constexpr double kManyTiles = 4.25;  // for each SM
  if (is_wide) {
    const bool is_short = keys <= kShort && !leaves_places(large_tiles(use), sm_count(use));
    return is_short                                 ? large_band_setting(is_wide)
           : are_large_uneven_tiles_best(use, keys) ? large_overlapped_band_setting()
                                                    : overlapped_band_setting();
  }
  return keys <= kShort                                          ? small_band_setting()
         : keys <= kLongNarrow || tiles_per_sm(use) > kManyTiles ? overlapped_band_setting()
                                                                 : shared_band_setting(is_wide);
}

// Of more than two tiles for each SM of narrow heads with slow rows, some of which have few keys.
// By times on an H200: up to 10 % less than without overlap, and lists up to 20 % less where rows
// are long.
std::optional<KernelConfig> slow_uneven_tiles_config(const Use& use, std::int64_t keys) {
  constexpr double kFew = 4;  // for each SM
  constexpr std::int64_t kShort = 512;
  constexpr std::int64_t kLong = 2048;
  if (tiles_per_sm(use) > kFew || keys <= kShort || has_thin_rows(use)) {
    return large_band_setting(false);
  }
  return keys >= kLong ? std::nullopt : std::optional(large_overlapped_band_setting(2));
}

// Of tiles some of which have few keys; the last ones have the most where `keys_grow`. Large ones
// take 3 to 13 % less on an H100 where rows are slow, and tiles more than 1.3 for each SM; of 40
// dimensions and many keys two warp groups that share them do.
std::optional<KernelConfig> few_uneven_tiles_config(const Use& use, std::int64_t keys,
                                                    bool keys_grow) {
  constexpr std::int64_t kShortSlowRow = 512;
  constexpr std::int64_t kLongSlimRow = 1024;
  constexpr std::int64_t kLongestTimed = 2048;
  constexpr std::int64_t kSlowDims = 40;  // of 56 they are up to 7 % slower
  const double per_sm = tiles_per_sm(use);
  const bool is_wide = has_wide_heads(use);
  const bool has_few = per_sm <= 4.0 / 3;
  if (keys > (has_few ? 4096 : 8192)) {
    return std::nullopt;
  }
  if (per_sm > 2) {
    if (!is_wide && has_slow_rows(use) && !has_one_tile(use)) {
      return slow_uneven_tiles_config(use, keys);
    }
    return is_wide && keys > 2048 && !are_large_uneven_tiles_best(use, keys) &&
                   columns(use) > kColumnsOfLargeTiles
               ? lone_band_setting(is_wide)
               : uneven_tiles_config(use, keys, is_wide);
  }
  if (!has_few && has_slow_rows(use) && (is_wide || columns(use) == kSlowDims) &&
      keys > kShortSlowRow && keys <= kLongestTimed && !has_one_tile(use)) {
    return is_wide || keys <= kLongSlimRow ? large_overlapped_band_setting()
                                           : lone_band_setting(is_wide);
  }
  const bool is_shared =
      is_wide ? per_sm > 1 && keys <= (per_sm >= 1.75 ? 1024 : 512) : !has_few || keys <= 512;
  if (!is_shared) {
    return lone_band_setting(is_wide);
  }
  KernelConfig config = shared_band_setting(is_wide);
  if (per_sm > 1 && keys_grow) {
    config.at("order") = 2;
  }
  return config;
}

// Whether keys are so many that it is faster to share them out, 16 at a time, which
// few_queries.jinja does. By times on an H100: where blocks are few, 512 keys of up to 16 queries
// take 0.89 to 1.02 of what they take here, 1024 0.73 to 0.95; of 17 to 32 queries 1024 keys take
// 0.74 to 0.92, and 1.14 where there is a block for every second SM. Windows, which were not timed,
// go there if they are long.
bool has_few_queries(const Use& use, std::int64_t keys, double per_sm) {
  constexpr std::int64_t kLongWindow = 1024;
  constexpr std::int64_t kKeysOfOneTile = 256;
  constexpr std::int64_t kKeysOfTwoTiles = 512;
  constexpr std::int64_t kWidestOfTwoTiles = 128;  // registers do not hold more sums
  if (use.dim("q_len") <= cost::kFewQueryRows) {
    return keys > kLongWindow ||
           (keys == use.dim("kv_len") && keys > kKeysOfOneTile && per_sm <= 0.75);
  }
  return use.dim("q_len") <= 2 * cost::kFewQueryRows && keys == use.dim("kv_len") &&
         keys > kKeysOfTwoTiles && per_sm <= 0.25 && columns(use) <= kWidestOfTwoTiles;
}

// Few query tiles do not hide each other's waits: more warps to a tile do, and products while
// threads make probabilities. By times on an H200, where lists of tiles are up to 28 % slower; but
// the SMs that long rows of fewer tiles leave over are of use to lists alone, for parts of rows,
// and what many keys of a few queries wait for is memory.
std::optional<KernelConfig> few_tiles_config(const Use& use, bool is_wide, double per_row) {
  const std::int64_t keys = keys_of_queries(use, 1);
  const double per_sm = tiles_per_sm(use);
  // Windows of up to two tiles for each SM have them at once, the short ones too.
  const bool is_even =
      has_even_rows(use, per_row) || (per_sm <= 2 && !has_open_side(use, band_of(use)));
  if (leaves_sms_idle(use, per_row, !is_even) || has_few_queries(use, keys, per_sm)) {
    return std::nullopt;
  }
  return is_even ? few_even_tiles_config(use, keys, per_sm, is_wide)
                 : few_uneven_tiles_config(use, keys,
                                           use.scope.mask_band_first <= 1 - use.dim("q_len"));
}

// Of many tiles of heads of more than 64 dimensions, by times on an H200. Tiles of 128 queries,
// which read half as much, are up to a third faster but where uneven rows are few.
std::optional<KernelConfig> wide_tiles_config(const Use& use, double per_row) {
  constexpr std::int64_t kFewKeys = 1024;
  const std::int64_t keys = use.dim("kv_len");
  const std::int64_t seen = keys_of_queries(use, 1);
  if (has_one_tile(use)) {
    return keys <= kFewKeys && per_row < kLongRow ? std::optional(band_setting(64, 64, 64, 2, 2))
                                                  : std::nullopt;
  }
  if (!has_even_rows(use, per_row) && tiles_per_sm(use) <= kFewTilesPerSm &&
      (!has_slow_rows(use) || are_large_uneven_tiles_best(use, seen))) {
    return uneven_tiles_config(use, seen, true);
  }
  // Longer windows with rows that TMA is slow with were not timed.
  const bool is_slow_window =
      keys > kFewKeys && has_slow_rows(use) && !has_open_side(use, band_of(use));
  return is_slow_window && per_row < kLongRow ? std::nullopt
                                              : std::optional(large_band_setting(true));
}

// Whether a window is of 193 to 256 keys for each query tile, and tiles are so few that it is best
// asked for at once, in two stages: 2 to 11 % less on an H200.
bool has_two_large_stages(const Use& use, std::int64_t span) {
  constexpr std::int64_t kKeysOfTwoStages = 256;
  constexpr double kManyTiles = 15;  // for each SM
  return span <= kKeysOfTwoStages && tiles_per_sm(use) < kManyTiles &&
         !has_open_side(use, band_of(use));
}

// Whether keys are of 32 to 48 dimensions, or 56 where rows are even, so that there is little to
// read, and many, in a band with an open side: then tiles of 128 queries take 3 to 10 % less on an
// H200.
bool has_many_slim_keys(const Use& use, bool is_even) {
  const std::int64_t most_dims = is_even ? 56 : 48;
  constexpr double kManyTiles = 10;  // for each SM
  constexpr std::int64_t kShort = 512;
  const std::int64_t keys = use.dim("kv_len");
  if (columns(use) > most_dims || columns(use) < kThinDims || use.dim("q_len") < kShort ||
      keys < kShort || !has_open_side(use, band_of(use))) {
    return false;
  }
  const bool is_thin = columns(use) == kThinDims;
  return tiles_per_sm(use) > (is_thin && !is_even ? kManyTiles : kFewTilesPerSm) &&
         (is_even || is_thin || keys > kShort);
}

// Whether lists, with tiles of 192 queries, are faster than bands with 128, two blocks an SM, which
// leave places, where most rows see all keys: up to 27 % if their waves have room for no more rows.
bool are_lists_of_most_faster(const Use& use) {
  return do_large_tiles_leave_places(use) &&
         rows_of_waves(use, 3 * mask::kTile, sm_count(use)) <=
             rows_of_waves(use, 2 * mask::kTile, 2 * sm_count(use));
}

// Of large tiles of heads of up to 64 dimensions.
std::optional<KernelConfig> large_tiles_config(const Use& use, bool sees_most) {
  if (sees_most && are_lists_of_most_faster(use)) {
    return std::nullopt;
  }
  return columns(use) <= kThinDims ? large_band_setting(false) : large_band_of_large_steps();
}

// Whether many queries of a head see many keys, all of them, as was timed.
bool sees_all_of_many(const Use& use) {
  constexpr std::int64_t kMany = 512;
  return sees_all(use, band_of(use)) && use.dim("q_len") >= kMany && use.dim("kv_len") >= kMany;
}

// Of more than three tiles of such heads for each SM, of rows that fill no lines or leave places:
// large ones that overlap, by up to 12 % on an H200, unless there is a second wave of them that
// leaves places, where lists are as much faster.
std::optional<KernelConfig> large_even_tiles_config(const Use& use) {
  return large_tiles(use) > 2 * sm_count(use) && do_large_tiles_leave_places(use)
             ? std::nullopt
             : std::optional(large_overlapped_band_setting(2));
}

// Of long rows of few tiles: three blocks an SM, unless that leaves places; then four small ones or
// two large ones that leave none, or lists.
std::optional<KernelConfig> few_long_rows_config(const Use& use, bool is_even, bool is_open) {
  const std::int64_t tiles = query_tiles(use);
  if (leaves_places(tiles, 3 * sm_count(use))) {
    if (is_even) {
      return sees_all_of_many(use) ? large_even_tiles_config(use)
             : is_open && !has_one_tile(use) && !do_large_tiles_leave_places(use)
                 ? std::optional(large_band_of_large_steps())
                 : std::nullopt;
    }
    if (!leaves_places(tiles, 4 * sm_count(use))) {
      return small_band_setting();
    }
  }
  return small_band_of_large_steps();
}

// Of many tiles of narrower heads. Rows of keys that fill no lines want tiles of 128 queries too;
// lists are 3 to 8 % faster where rows that see all keys are many or leave places, but for the
// longest.
std::optional<KernelConfig> narrow_tiles_config(const Use& use, std::int64_t span, double per_row) {
  constexpr double kMany = 8;
  constexpr double kMostFull = 9;  // of rows that fill no lines and see all, as was timed
  constexpr double kShortRow = 8;
  constexpr double kLongUnevenRow = 24;
  constexpr double kLongEvenRow = 48;
  const double per_sm = tiles_per_sm(use);
  const bool is_open = has_open_side(use, band_of(use));
  const bool is_even = has_even_rows(use, per_row);
  const bool sees_most = is_even && is_open;
  if (has_many_slim_keys(use, is_even)) {
    return large_tiles_config(use, sees_most);
  }
  if (!has_one_tile(use) && !has_rows_of(use, is_even ? 64 : 16)) {
    return !is_even ? slow_uneven_tiles_config(use, keys_of_queries(use, 1))
           : sees_all_of_many(use) && !has_thin_rows(use) && per_sm <= kMostFull
               ? large_even_tiles_config(use)
               : std::optional(large_band_setting(false));
  }
  if (!is_even && per_sm <= kFewTilesPerSm) {
    return uneven_tiles_config(use, keys_of_queries(use, 1), false);
  }
  if (per_row < kLongRow) {
    const bool are_lists_faster =
        sees_most && per_row >= kShortRow && leaves_places(query_tiles(use), 4 * sm_count(use));
    return are_lists_faster                  ? std::nullopt
           : has_two_large_stages(use, span) ? std::optional(small_band_of_large_steps())
                                             : std::optional(small_band_setting());
  }
  if (per_sm < kMany && (is_open || has_one_tile(use) || per_row >= kLongUnevenRow)) {
    return few_long_rows_config(use, is_even, is_open);
  }
  if (has_one_tile(use) || (sees_most && per_row < kLongEvenRow)) {
    return std::nullopt;
  }
  // So many rows of windows are cut short that blocks do not end together.
  if (per_sm <= kFewTilesPerSm && !is_open && use.dim("q_len") <= 3 * keys_of_queries(use, 1)) {
    return overlapped_band_setting();
  }
  // Windows of 1024 keys take 3 to 9 % less with small tiles.
  return per_row >= kLongUnevenRow || sees_most ? large_tiles_config(use, sees_most)
                                                : std::optional(small_band_setting());
}

// Whether steps of keys, each ahead of the products of the one before, are faster than all of up to
// 192 keys at once, of which uneven rows do without a third: by 4 to 20 % on an H200, where blocks
// are more than SMs, or twice as many for the third tile to be of less than 32 keys.
bool has_keys_to_leave_out(const Use& use, std::int64_t span, double per_row) {
  constexpr std::int64_t kTwoTiles = 2 * mask::kTile;
  constexpr std::int64_t kMostOfSmallThirdTile = 160;
  return !has_even_rows(use, per_row) && span > kTwoTiles &&
         tiles_per_sm(use) > (span > kMostOfSmallThirdTile ? 1 : 2);
}

// Of the kernel for bands, by times on an H200; nothing where a warp that is ahead with lists of
// tiles is worth its while. All keys of 64 queries at once is best where they fit registers, but
// for uneven rows of many tiles of narrow heads, or of three tiles: there is one chain of waits
// then, and one maximum.
std::optional<KernelConfig> band_tiles_config(const Use& use, double per_row) {
  constexpr std::int64_t kMostAtOnce = 192;  // keys
  const bool is_wide = has_wide_heads(use);
  const std::int64_t span = keys_of_queries(use, mask::kTile);
  const double per_sm = tiles_per_sm(use);
  if (span <= kMostAtOnce && (is_wide || per_sm <= kFewTilesPerSm || has_even_rows(use, per_row))) {
    if (has_keys_to_leave_out(use, span, per_row)) {
      return overlapped_band_setting();
    }
    const std::int64_t tile_k = std::max(mask::kTile, mask::ceil_div(span, 16) * 16);
    return band_setting(64, tile_k, tile_k, 1, is_wide ? 2 : tile_k > 128 ? 3 : 4);
  }
  if (per_sm < 3) {
    return few_tiles_config(use, is_wide, per_row);
  }
  if (per_row > kVeryLongRow) {
    return std::nullopt;
  }
  return is_wide ? wide_tiles_config(use, per_row) : narrow_tiles_config(use, span, per_row);
}

}  // namespace

bool has_band_tiles(const contract::TemplateContract& contract) {
  return has_names(contract, band_setting(0, 0, 1, 1, 0));
}

std::optional<KernelConfig> config_of_few_tiles(const Use& use, std::int64_t keys, bool are_even) {
  constexpr double kFewest = 3;  // for each SM
  const bool is_wide = has_wide_heads(use);
  const double per_sm = tiles_per_sm(use);
  if (are_even) {
    return per_sm < kFewest ? few_even_tiles_config(use, keys, per_sm, is_wide) : std::nullopt;
  }
  if (per_sm < kFewest) {
    std::optional<KernelConfig> config = few_uneven_tiles_config(use, keys, true);
    // Up to 20 % less than an SM each, which bands have up to 4/3 of them, and though rows that do
    // not grow are no pairs of long and short ones.
    if (config && !is_wide && !has_slow_rows(use) && per_sm > 1 && per_sm <= 2) {
      config = shared_band_setting(is_wide);
      config->at("order") = 2;
    }
    return config;
  }
  if (!has_slow_rows(use) || has_one_tile(use)) {
    return uneven_tiles_config(use, keys, is_wide);
  }
  return !is_wide                                 ? slow_uneven_tiles_config(use, keys)
         : are_large_uneven_tiles_best(use, keys) ? std::optional(large_overlapped_band_setting())
                                                  : std::nullopt;
}

KernelConfig config_of_many_narrow_tiles() {
  return small_band_setting();
}

std::optional<KernelConfig> band_config(const Use& use, double per_row) {
  std::optional<KernelConfig> config = band_tiles_config(use, per_row);
  if (!config || config->at("order") != 0) {
    return config;
  }
  config->at("late_values") = has_late_values(use, *config) ? 1 : 0;
  config->at("order") = order_of_tiles(use, *config, per_row);
  return config;
}

}  // namespace stof::fusion
