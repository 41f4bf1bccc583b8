#include "fusion/narrow_lists.hpp"

#include <algorithm>
#include <cstdint>

#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// How many of the rows that waves of tiles have room for are queries.
double filled(const Use& use, std::int64_t rows, std::int64_t at_once) {
  const std::int64_t waves = mask::ceil_div(query_tiles(use, rows), at_once);
  const std::int64_t queries = use.dim("batch") * use.dim("heads") * use.dim("q_len");
  return static_cast<double>(queries) / static_cast<double>(waves * at_once * rows);
}

// Whether tiles of 192 queries, one for each SM, are faster than two of 128: 2 to 14 % less in 24
// of 29 shapes, if they leave few more places; 1 to 4 % more if they leave more. Rows that TMA is
// slow with are as fast from fewer keys on, and those of 56 dimensions, of which two tiles of 128
// take longest, with more places.
bool do_tiles_of_192_fill_waves(const Use& use) {
  constexpr double kManyTiles = 5;  // of 64 queries, for each SM
  constexpr std::int64_t kMany = 1500;
  constexpr std::int64_t kManySlow = 384;
  constexpr std::int64_t kSlimmestOfMorePlaces = 56;
  constexpr double kLeastFilled = 0.8;
  const bool is_slow = !has_rows_of(use, 16);
  const double least = is_slow && columns(use) >= kSlimmestOfMorePlaces ? 0.85 : 0.95;
  const std::int64_t length = std::min(use.dim("q_len"), use.dim("kv_len"));
  const double of_192 = filled(use, 3 * mask::kTile, sm_count(use));
  return tiles_per_sm(use) > kManyTiles && length >= (is_slow ? kManySlow : kMany) &&
         of_192 >= kLeastFilled &&
         of_192 >= least * filled(use, 2 * mask::kTile, 2 * sm_count(use));
}

// Whether heads of 64 dimensions have one tile of 128 queries each and are more than two for each
// SM: up to 17 % less in 27 shapes than tiles of 64 and two of 128, up to 12 % more of fewer keys.
bool has_many_single_tiles_of_64(const Use& use) {
  constexpr std::int64_t kFewestKeys = 384;
  constexpr std::int64_t kMostKeysTimed = 4096;
  return has_rows_of(use, mask::kTile) && use.dim("q_len") > mask::kTile &&
         use.dim("q_len") <= 2 * mask::kTile && use.dim("kv_len") >= kFewestKeys &&
         use.dim("kv_len") <= kMostKeysTimed &&
         query_tiles(use, 2 * mask::kTile) > 2 * sm_count(use);
}

KernelConfig list_setting(std::int64_t tile_q) {
  return KernelConfig{{"tile_q", tile_q},   {"tile_k", 128}, {"slots", 5},
                      {"blocks_per_sm", 1}, {"overlap", 1},  {"query_slots", 2}};
}

}  // namespace

std::optional<KernelConfig> list_setting_for_narrow_heads(const Use& use, const mask::Band& band) {
  constexpr std::int64_t kFewestColumns = 32;
  if (use.ports.contains("kv_lengths") || use.dim("heads") != use.dim("kv_heads") ||
      !sees_all(use, band) ||
      std::min(use.dim("head_dim"), use.dim("value_dim")) < kFewestColumns) {
    return std::nullopt;
  }
  return has_many_single_tiles_of_64(use)  ? std::optional(list_setting(2 * mask::kTile))
         : do_tiles_of_192_fill_waves(use) ? std::optional(list_setting(3 * mask::kTile))
                                           : std::nullopt;
}

}  // namespace stof::fusion
