#include "fusion/band_rules.hpp"

#include <algorithm>
#include <cstdint>

#include "fusion/attention_use.hpp"
#include "fusion/band_tiles.hpp"
#include "fusion/few_keys_rules.hpp"
#include "fusion/narrow_lists.hpp"
#include "fusion/score_rules.hpp"
#include "fusion/settings.hpp"
#include "fusion/wide_lists.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

KernelConfig window_setting(std::int64_t tile_k, std::int64_t groups, bool is_wide) {
  return KernelConfig{{"tile_k", tile_k},
                      {"groups", groups},
                      {"slots", is_wide ? 5 : 10},
                      {"query_slots", is_wide ? 4 : 6}};
}

KernelConfig held_setting(std::int64_t pieces) {
  return KernelConfig{{"pieces", pieces}};
}

KernelConfig short_heads_setting() {
  return KernelConfig{{"slots", 3}};
}

// Of how many query tiles an SM a walk along windows is worth while, by times on an H200. Wide
// heads are, since blocks without a walk have room for few on an SM, and read their keys twice or
// thrice.
double least_for_walk(const Use& use, std::int64_t span) {
  constexpr std::int64_t kFewKeys = 128;
  constexpr std::int64_t kManyQueries = 2048;
  constexpr std::int64_t kManyWideQueries = 1024;
  if (has_wide_heads(use)) {
    return use.dim("q_len") >= kManyWideQueries ? 2.5 : 5;
  }
  return span > kFewKeys && use.dim("q_len") >= kManyQueries ? 10 : 16;
}

// Whether heads share keys of which L2 holds but a part, and a walk, which comes to a head when it
// is done with the one before, reads them again for each: 10 to 38 % more than tiles of all heads.
bool would_read_keys_again(const Use& use) {
  constexpr std::int64_t kBytes = 2;  // of an element
  const std::int64_t bytes = use.dim("batch") * use.dim("kv_heads") *
                             keys_of_queries(use, use.dim("q_len")) *
                             (use.dim("head_dim") + use.dim("value_dim")) * kBytes;
  return use.dim("heads") != use.dim("kv_heads") &&
         4 * bytes > 3 * use.scope.device.at("device.l2_bytes");
}

// Of the kernel that walks along short windows, by times on an H200. Sums for a log-sum-exp take
// registers, which two warp groups have, and so do outputs of wide heads.
std::optional<KernelConfig> window_config(const Use& use) {
  constexpr std::int64_t kMostAtOnce = 192;  // keys
  const std::int64_t first = std::max(use.scope.mask_band_first, 1 - use.dim("q_len"));
  const std::int64_t end = std::min(use.scope.mask_band_end, use.dim("kv_len"));
  const std::int64_t span = mask::kTile - 1 + end - first;
  if (has_open_side(use, band_of(use))) {
    return std::nullopt;  // no keys move along
  }
  if (span > kMostAtOnce || tiles_per_sm(use) < least_for_walk(use, span) ||
      would_read_keys_again(use)) {
    return std::nullopt;
  }
  const bool is_wide = has_wide_heads(use);
  return window_setting(std::max(mask::kTile, mask::ceil_div(span, 32) * 32),
                        is_wide || use.ports.contains("lse") ? 2 : 3, is_wide);
}

// By their names too: those of their parameters may well be a user's.
bool has_held_keys(const contract::TemplateContract& contract) {
  return contract.name == "attention_held_sm90" && has_names(contract, held_setting(0));
}

// Of the kernel that holds all keys of a head, by times on an H200; nothing where its blocks are
// fewer than SMs or more, or where some of them or their four warp groups have more to do.
std::optional<KernelConfig> held_config(const Use& use, double per_row) {
  constexpr std::int64_t kGroups = 4;
  const std::int64_t tiles = mask::ceil_div(use.dim("q_len"), mask::kTile);
  if (!has_held_keys(use.kernel->contract) || tiles < kGroups ||
      !has_open_side(use, band_of(use))) {
    return std::nullopt;
  }
  const bool is_even = has_even_rows(use, per_row);
  const double least = tiles > kGroups ? 0.85 : is_even ? 0.8 : 0.65;  // of the SMs
  const auto sms = static_cast<double>(sm_count(use));
  for (const std::int64_t pieces : {2, 1}) {
    const auto blocks = static_cast<double>(use.dim("batch") * use.dim("heads") * pieces);
    const bool is_fair = is_even ? tiles % (kGroups * pieces) == 0
                                 : mask::ceil_div(tiles, 2) % pieces == 0;  // pairs of tiles
    if (is_fair && blocks <= sms && blocks >= least * sms) {
      return held_setting(pieces);
    }
  }
  return std::nullopt;
}

// Whether the kernel that goes from head to head is the fastest, by times on an H200: of wide heads
// of three or four query tiles, where band_sm90 has one or two in a block. Of three it takes 4 to
// 18 % less, of four up to 13, and where rows are uneven, and warps idle, 1 to 6 of heads that are
// full. Blocks have as many heads as each other but for one. With one each, where nothing is ahead
// of its use, three tiles with even rows alone gain.
bool are_for_short_heads(const Use& use, const mask::Band& band, bool is_even) {
  struct Limits {
    std::int64_t most_keys;
    std::int64_t rows;   // more than so many
    double most_longer;  // the longest block than their mean
  };
  constexpr std::int64_t kMostRows = 256;  // that the kernel takes
  constexpr std::int64_t kMostColumns = 128;
  constexpr std::int64_t kMostHeads = 1024;
  if (!has_wide_heads(use) || columns(use) > kMostColumns ||
      use.dim("heads") != use.dim("kv_heads") || !has_open_side(use, band) ||
      use.dim("q_len") > kMostRows || use.dim("heads") > kMostHeads) {
    return false;
  }
  const bool has_three = use.dim("q_len") <= 3 * mask::kTile;
  const Limits limits = has_three && is_even ? Limits{512, 152, 1.1}
                        : has_three          ? Limits{512, 2 * mask::kTile, 1.1}
                        : is_even            ? Limits{256, 3 * mask::kTile, 1.25}
                                             : Limits{256, 240, 1.05};
  const std::int64_t heads = use.dim("batch") * use.dim("heads");
  const std::int64_t per_block = mask::ceil_div(heads, sm_count(use));
  const double longer = static_cast<double>(per_block * sm_count(use)) / static_cast<double>(heads);
  const bool is_full =
      has_three || is_even || std::min(use.dim("head_dim"), use.dim("value_dim")) > 112;
  const bool has_work_ahead = per_block > 1 || (has_three && is_even);
  return is_full && has_work_ahead && use.dim("kv_len") <= limits.most_keys &&
         use.dim("q_len") > limits.rows && longer < limits.most_longer;
}

std::optional<KernelConfig> short_heads_config(const Use& use, double per_row) {
  return goes_from_head_to_head(use.kernel->contract) &&
                 are_for_short_heads(use, band_of(use), has_even_rows(use, per_row))
             ? std::optional(short_heads_setting())
             : std::nullopt;
}

// Whether lists of many short windows are faster, by up to 17 %: batch elements have as many keys
// as they say, and lists leave out what lies behind these, of which the blocks of bands bring all.
bool has_shorter_lists(const Use& use) {
  constexpr double kManyNarrow = 16;  // query tiles for each SM
  return use.ports.contains("kv_lengths") && window_config(use) &&
         (has_wide_heads(use) || tiles_per_sm(use) > kManyNarrow);
}

}  // namespace

bool has_all_keys_at_once(const contract::TemplateContract& contract) {
  return has_few_keys(contract) || has_held_keys(contract);
}

bool walks_along_windows(const contract::TemplateContract& contract) {
  return has_names(contract, window_setting(0, 0, false));
}

bool goes_from_head_to_head(const contract::TemplateContract& contract) {
  return contract.name == "attention_short_heads_sm90" &&
         has_names(contract, short_heads_setting());
}

bool has_band_rule(const contract::TemplateContract& contract) {
  return takes_bands(contract) &&
         (has_all_keys_at_once(contract) || walks_along_windows(contract) ||
          goes_from_head_to_head(contract) || has_band_tiles(contract));
}

std::optional<KernelConfig> setting_for_bands(const Use& use, const AttentionMask& mask) {
  if ((mask.modifier.has_score() && !use.kernel->contract.takes_scores) || has_shorter_lists(use)) {
    return std::nullopt;
  }
  const double per_row = tiles_per_row(use, mask);
  for (const std::optional<KernelConfig>& config :
       {few_keys_of_band(use), held_config(use, per_row), short_heads_config(use, per_row),
        window_config(use), band_config(use, per_row)}) {
    if (config && mask.modifier.has_score() && has_names(use.kernel->contract, *config)) {
      return band_setting_for_scores(use, *config, mask.modifier);
    }
    if (config && is_setting(use, *config)) {
      return config;
    }
  }
  return std::nullopt;
}

std::optional<KernelConfig> list_setting_for_bands(const Use& use, const AttentionMask& mask) {
  const std::optional<mask::Band> band = mask.arrays ? mask.arrays->band() : std::nullopt;
  if (!band || mask.modifier.has_score() || packs(use.kernel->contract)) {
    return std::nullopt;
  }
  const std::optional<KernelConfig> config = has_wide_heads(use)
                                                 ? list_setting_for_wide_heads(use, *band)
                                                 : list_setting_for_narrow_heads(use, *band);
  return config && is_setting(use, *config) &&
                 (may_be_lists_of_short_heads(use) ||
                  !are_for_short_heads(use, *band, sees_all(use, *band)))
             ? config
             : std::nullopt;
}

}  // namespace stof::fusion
