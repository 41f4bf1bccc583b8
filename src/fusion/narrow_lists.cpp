#include "fusion/narrow_lists.hpp"

#include <algorithm>
#include <cstdint>

#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Whether tiles of 192 queries, one for each SM, are faster than two of 128: 1 to 14 % less in 28
// shapes of up to 6000 keys, if they leave few more places; 1 to 4 % more if they leave more. Rows
// that TMA is slow with are as fast from fewer keys on, and those of 56 dimensions, of which two
// tiles of 128 take longest, with more places.
bool do_tiles_of_192_fill_waves(const Use& use) {
  constexpr double kManyTiles = 5;  // of 64 queries, for each SM
  constexpr std::int64_t kMany = 1500;
  constexpr std::int64_t kManySlow = 384;
  constexpr std::int64_t kSlimmestOfMorePlaces = 56;
  constexpr std::int64_t kMost = 8192;
  constexpr double kMostPlaces = 1.25;  // for each query
  const bool is_slow = !has_rows_of(use, 16);
  const double more = is_slow && columns(use) >= kSlimmestOfMorePlaces ? 1.18 : 1.06;
  const auto [shorter, longer] = std::minmax({use.dim("q_len"), use.dim("kv_len")});
  const auto queries = static_cast<double>(use.dim("batch") * use.dim("heads") * use.dim("q_len"));
  const auto of_192 = static_cast<double>(rows_of_waves(use, 3 * mask::kTile, sm_count(use)));
  const auto of_128 = static_cast<double>(rows_of_waves(use, 2 * mask::kTile, 2 * sm_count(use)));
  return tiles_per_sm(use) > kManyTiles && shorter >= (is_slow ? kManySlow : kMany) &&
         longer <= kMost && of_192 <= kMostPlaces * queries && of_192 <= more * of_128;
}

// Whether heads of 64 dimensions have one tile of 128 queries each and are more than two for each
// SM: up to 17 % less in 27 shapes than tiles of 64 and two of 128, up to 12 % more of fewer keys.
bool has_many_single_tiles_of_64(const Use& use) {
  constexpr std::int64_t kFewestKeys = 384;
  constexpr std::int64_t kMostKeysTimed = 4096;
  return has_rows_of(use, mask::kTile) && has_many_heads_of_128(use) &&
         use.dim("kv_len") >= kFewestKeys && use.dim("kv_len") <= kMostKeysTimed;
}

KernelConfig narrow_list_setting(std::int64_t tile_q) {
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
  return has_many_single_tiles_of_64(use)  ? std::optional(narrow_list_setting(2 * mask::kTile))
         : do_tiles_of_192_fill_waves(use) ? std::optional(narrow_list_setting(3 * mask::kTile))
                                           : std::nullopt;
}

}  // namespace stof::fusion
