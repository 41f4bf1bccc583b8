#include "fusion/few_keys_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

constexpr std::int64_t kQueriesOfMma = 16;  // of a block

KernelConfig few_keys_setting(std::int64_t warps, std::int64_t pieces) {
  return KernelConfig{{"warps", warps}, {"pieces", pieces}};
}

KernelConfig wgmma_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t blocks_per_sm,
                           bool has_late_values) {
  return KernelConfig{{"tile_q", tile_q},
                      {"tile_k", tile_k},
                      {"blocks_per_sm", blocks_per_sm},
                      {"late_values", has_late_values ? 1 : 0}};
}

// By their names too: what they take and their parameters may well be a user's.
bool is_few_keys(const contract::TemplateContract& contract, std::string_view name) {
  return contract.name == name && has_names(contract, few_keys_setting(0, 0));
}
bool is_for_bands(const contract::TemplateContract& contract) {
  return takes_bands(contract) && is_few_keys(contract, "attention_few_keys");
}
bool is_for_bits(const contract::TemplateContract& contract) {
  return takes_all_bitmaps(contract) && is_few_keys(contract, "attention_few_keys_bits");
}
bool has_wgmma(const contract::TemplateContract& contract) {
  return takes_all_bitmaps(contract) && contract.name == "attention_few_keys_sm90" &&
         has_names(contract, wgmma_setting(0, 0, 0, false));
}

// With all keys of 16 queries at once, which are so many.
std::optional<KernelConfig> setting_of_keys(std::int64_t keys) {
  constexpr std::int64_t kWarps = 4;
  constexpr std::int64_t kPieceKeys = 16;
  constexpr std::int64_t kMostPieces = 4;
  const std::int64_t pieces = mask::ceil_div(keys, kWarps * kPieceKeys);
  return pieces <= kMostPieces ? std::optional(few_keys_setting(kWarps, pieces)) : std::nullopt;
}

// What the SM with the most blocks of 16 queries has, in tiles of 64 keys of 64 dimensions.
double most_tiles(const Use& use) {
  const std::int64_t queue = mask::ceil_div(query_tiles(use, kQueriesOfMma), sm_count(use));
  return static_cast<double>(use.dim("kv_len")) / mask::kTile *
         static_cast<double>(queue * mask::ceil_div(columns(use), mask::kTile));
}

// Whether wgmma is faster than mma.sync: from so few tiles on that these are nearly all there is.
bool are_for_wgmma(const Use& use) {
  constexpr std::int64_t kHopper = 90;
  constexpr std::int64_t kMostOfWgmma = 192;
  constexpr std::int64_t kFewQueries = 32;  // leave most of a tile empty
  constexpr double kFewOfMma = 4.5;
  return use.scope.device.at("device.sm") == kHopper && use.dim("kv_len") <= kMostOfWgmma &&
         use.dim("q_len") > kFewQueries && most_tiles(use) > kFewOfMma;
}

// In how many waves of blocks lists are no faster; 0: in any number. Those read wide heads and rows
// that are no whole lines less often where keys are many.
std::int64_t most_waves(const Use& use) {
  constexpr std::int64_t kManyKeys = 112;
  constexpr std::int64_t kMoreKeys = 128;
  const std::int64_t keys = use.dim("kv_len");
  if (keys <= kManyKeys || (!has_wide_heads(use) && has_rows_of(use, 16))) {
    return 0;
  }
  return has_wide_heads(use) && keys > kMoreKeys ? 1 : 2;
}

// As many blocks an SM as there is room for, nothing where their waves are too many. Values are
// asked for when keys are there, unless more blocks wait, which then have to wait longer; wide
// heads with few keys do not mind.
std::optional<KernelConfig> with_tiles_of(const Use& use, std::int64_t tile_q) {
  constexpr std::int64_t kFewKeys = 128;
  const std::int64_t keys = use.dim("kv_len");
  const std::int64_t tile_k = std::max(mask::kTile, mask::ceil_div(keys, 16) * 16);
  for (const std::int64_t blocks : {4, 3, 2, 1}) {
    const std::int64_t waves = mask::ceil_div(query_tiles(use, tile_q), blocks * sm_count(use));
    const bool is_late =
        tile_q > mask::kTile || waves == 1 || (has_wide_heads(use) && keys <= kFewKeys);
    const KernelConfig config = wgmma_setting(tile_q, tile_k, blocks, is_late);
    if (is_setting(use, config)) {
      const std::int64_t most = most_waves(use);
      return most == 0 || waves <= most ? std::optional(config) : std::nullopt;
    }
  }
  return std::nullopt;
}

// A tile for each head of 65 to 128 queries reads its keys once, which pays where rows of keys are
// no whole lines, and of wide heads while all tiles are on an SM at once.
std::optional<KernelConfig> setting_for_wgmma(const Use& use) {
  constexpr std::int64_t kLargeTile = 2 * mask::kTile;
  if (!are_for_wgmma(use)) {
    return std::nullopt;
  }
  const bool has_slow_rows = !has_rows_of(use, 16);
  if (!has_one_tile(use) && use.dim("q_len") <= kLargeTile && query_tiles(use) > sm_count(use) &&
      (has_slow_rows || has_wide_heads(use))) {
    std::optional<KernelConfig> large = with_tiles_of(use, kLargeTile);
    if (large && (has_slow_rows ||
                  query_tiles(use, kLargeTile) <= large->at("blocks_per_sm") * sm_count(use))) {
      return large;
    }
  }
  return with_tiles_of(use, mask::kTile);
}

// Whether so many tiles are empty that it pays to skip them, as lists do; such masks were not
// timed.
bool leaves_out_much(const AttentionMask& mask) {
  constexpr double kLeastSeen = 0.6;
  return static_cast<double>(mask.features().active_tiles()) <
         kLeastSeen * static_cast<double>(mask.features().tiles);
}

std::optional<KernelConfig> setting_for_bits(const Use& use) {
  constexpr double kMostTiles = 10;
  if (are_for_wgmma(use) || most_tiles(use) > kMostTiles) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config = setting_of_keys(use.dim("kv_len"));
  return config && is_setting(use, *config) ? config : std::nullopt;
}

}  // namespace

bool has_few_keys(const contract::TemplateContract& contract) {
  return is_for_bands(contract) || is_for_bits(contract) || has_wgmma(contract);
}

// By times on an H200: not where larger query tiles, which read less, have blocks enough for all
// SMs too.
std::optional<KernelConfig> few_keys_of_band(const Use& use) {
  if (!is_for_bands(use.kernel->contract)) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config = setting_of_keys(keys_of_queries(use, kQueriesOfMma));
  const double most = config && config->at("pieces") == 1 ? 3.0 : 1.5;
  return static_cast<double>(query_tiles(use, kQueriesOfMma)) <=
                 most * static_cast<double>(sm_count(use))
             ? config
             : std::nullopt;
}

// By times on an H200, where lists take 7 to 9 us however small the problem is.
std::optional<KernelConfig> few_keys_by_bits(const Use& use, const AttentionMask& mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  if (!mask.arrays || mask.arrays->band() || leaves_out_much(mask)) {
    return std::nullopt;
  }
  return has_wgmma(contract)     ? setting_for_wgmma(use)
         : is_for_bits(contract) ? setting_for_bits(use)
                                 : std::nullopt;
}

}  // namespace stof::fusion
