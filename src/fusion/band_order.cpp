#include "fusion/band_order.hpp"

#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Whether all blocks are on an SM at once.
bool are_at_once(const Use& use, const KernelConfig& config) {
  return query_tiles(use, config.at("tile_q")) <= config.at("blocks_per_sm") * sm_count(use);
}

// Whether tiles of a head, side by side, are best where windows, or all keys, come at once: they
// then ask together for the keys that they share. By times on an H100 and an H200 up to 10 % less
// where heads are short or all blocks are on an SM at once, 1 to 3 % more elsewhere.
bool shares_keys_at_once(const Use& use, const KernelConfig& config) {
  constexpr std::int64_t kMostQueries = 1024;
  const mask::Band band = band_of(use);
  return has_rows_of(use, 16) && (!has_open_side(use, band) || sees_all(use, band)) &&
         (use.dim("q_len") <= kMostQueries || are_at_once(use, config));
}

// Whether they are where keys come in stages: 0 to 8 % less where narrow heads see all, or wide
// ones in tiles of 128 queries, and for windows in tiles of 64 narrow queries or of 128 wide ones,
// but in long windows up to 13 % more, and in those whose rows are uneven up to 28 %.
bool shares_stages(const Use& use, const KernelConfig& config, double per_row) {
  const mask::Band band = band_of(use);
  const bool is_all = sees_all(use, band);
  if (!has_rows_of(use, 16) || use.dim("heads") != use.dim("kv_heads") || tiles_per_sm(use) <= 1 ||
      !(is_all ||
        (per_row < kLongRow && !has_open_side(use, band) && has_even_rows(use, per_row)))) {
    return false;
  }
  const bool has_large_tiles = config.at("tile_q") > mask::kTile;
  return has_wide_heads(use) ? has_large_tiles : is_all || !has_large_tiles;
}

// Whether they are where short heads are so many that memory is what they wait for: 1 to 5 % less,
// but not of rows that TMA is slow with, nor where heads share keys (2 to 5 % more). Longest rows
// first are best from shorter narrow heads on (2 to 6 % less on an H200, 1 % more on an H100).
bool has_many_short_heads(const Use& use, double per_row) {
  constexpr double kManyTiles = 10;  // for each SM
  constexpr double kManyWideTiles = 14;
  const bool is_wide = has_wide_heads(use);
  const bool is_uneven = !has_even_rows(use, per_row);
  const std::int64_t short_head = !is_wide && is_uneven && has_longest_first(use) ? 384 : 512;
  return use.dim("q_len") <= short_head && has_rows_of(use, 16) &&
         use.dim("heads") == use.dim("kv_heads") &&
         tiles_per_sm(use) >= (is_wide ? kManyWideTiles : kManyTiles);
}

// Whether they are in long windows of wide heads, as they were on an H100: by 1 to 6 %.
bool has_long_wide_windows(const Use& use, double per_row) {
  constexpr std::int64_t kShortHead = 512;
  constexpr double kManyTiles = 32;  // for each SM
  return has_wide_heads(use) && use.dim("q_len") > kShortHead && tiles_per_sm(use) >= kManyTiles &&
         per_row >= kLongRow && !has_open_side(use, band_of(use));
}

// Whether the rows of several batch elements are best side by side: uneven ones, and long windows
// of few heads, whose rows are cut short at one end (up to 10 % less on an H200; 1 to 2 % more
// where an element has more tiles).
bool has_elements_side_by_side(const Use& use, double per_row) {
  constexpr double kFewOfElement = 2.5;  // tiles for each SM
  if (!has_longest_first(use) || !has_even_rows(use, per_row)) {
    return has_longest_first(use);
  }
  return per_row >= kLongRow && !has_open_side(use, band_of(use)) &&
         tiles_per_sm(use) < kFewOfElement * static_cast<double>(use.dim("batch"));
}

bool has_heads_in_turn(const Use& use, const KernelConfig& config, double per_row) {
  return (config.at("stages") == 1 ? shares_keys_at_once(use, config)
                                   : shares_stages(use, config, per_row)) ||
         has_many_short_heads(use, per_row) || has_long_wide_windows(use, per_row);
}

}  // namespace

bool has_longest_first(const Use& use) {
  constexpr double kManyTiles = 20;  // for each SM
  constexpr double kManyOfSharedKeys = 10;
  constexpr std::int64_t kShortQueries = 256;
  const bool is_wide = has_wide_heads(use);
  const bool shares_wide_keys = is_wide && use.dim("heads") != use.dim("kv_heads");
  const std::int64_t long_queries = shares_wide_keys ? 2048 : is_wide ? 896 : 1024;
  return use.dim("batch") > 1 && query_tiles(use) / use.dim("batch") < 4 * sm_count(use) &&
         (tiles_per_sm(use) < (shares_wide_keys && use.dim("q_len") <= kShortQueries
                                   ? kManyOfSharedKeys
                                   : kManyTiles) ||
          use.dim("q_len") >= long_queries);
}

bool has_late_values(const Use& use, const KernelConfig& config) {
  return config.at("stages") == 1 && are_at_once(use, config);
}

std::int64_t order_of_tiles(const Use& use, const KernelConfig& config, double per_row) {
  if (has_heads_in_turn(use, config, per_row)) {
    return 3;
  }
  return has_elements_side_by_side(use, per_row) ? 1 : 0;
}

}  // namespace stof::fusion
