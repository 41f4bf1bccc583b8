#include "fusion/interval_rules.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "cost/model.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/band_order.hpp"
#include "fusion/band_tiles.hpp"
#include "fusion/score_rules.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

constexpr std::array<const char*, 7> kParameters = {
    "tile_q", "tile_k", "stages", "blocks_per_sm", "overlap", "key_groups", "order"};

// Those of a setting of band_sm90 whose steps are as large as its stages, or as its key groups'
// parts of them.
KernelConfig of_band_setting(const KernelConfig& band) {
  KernelConfig config;
  for (const char* const name : kParameters) {
    config[name] = band.at(name);
  }
  return config;
}

KernelConfig large_setting() {
  return KernelConfig{{"tile_q", 128}, {"tile_k", 64},    {"stages", 2}, {"blocks_per_sm", 2},
                      {"overlap", 0},  {"key_groups", 1}, {"order", 0}};
}

// Of the rows of a mask, in tiles of 64 keys that 64 queries see.
struct RowLengths {
  double mean;
  std::int64_t longest;
  bool grow;  // none sees less than the one before it, as in causal masks

  bool are_even() const {
    constexpr double kEven = 0.9;
    return mean >= kEven * static_cast<double>(longest);
  }
};

bool do_rows_grow(const mask::AttentionTiles& tiles, std::int64_t tiles_of_plane) {
  for (std::size_t row = 1; row + 1 < tiles.row_ptr.size(); ++row) {
    const std::int64_t before = tiles.row_ptr[row] - tiles.row_ptr[row - 1];
    if (static_cast<std::int64_t>(row) % tiles_of_plane != 0 &&
        tiles.row_ptr[row + 1] - tiles.row_ptr[row] < before) {
      return false;
    }
  }
  return true;
}

RowLengths row_lengths(const Use& use, const AttentionMask& mask) {
  const std::int64_t tiles_of_plane = mask::ceil_div(use.dim("q_len"), mask::kTile);
  return {.mean = tiles_per_row(use, mask),
          .longest = mask.features().longest_tile_row,
          .grow = do_rows_grow(mask.known()->tiles(mask::kTile), tiles_of_plane)};
}

// How many tiles of keys there are from the first one that a query tile sees to its last one, of
// all query tiles, for each that it sees.
double tiles_between(const mask::AttentionTiles& tiles) {
  std::int64_t between = 0;
  for (std::size_t row = 0; row + 1 < tiles.row_ptr.size(); ++row) {
    const auto begin = static_cast<std::size_t>(tiles.row_ptr[row]);
    const auto end = static_cast<std::size_t>(tiles.row_ptr[row + 1]);
    if (begin < end) {
      between += tiles.tile_col[end - 1] - tiles.tile_col[begin] + 1;
    }
  }
  const auto seen = static_cast<double>(tiles.tile_col.size());
  return seen == 0 ? 1 : static_cast<double>(between) / seen;
}

constexpr double kManyWideTiles = 3.5;      // of 64 queries, for each SM
constexpr std::int64_t kMostColumns = 112;  // of these tiles, where lists are no faster

// Whether tiles of 128 queries, of which an SM has two blocks, are best: of many wide heads that
// fill them, sooner where rows are short, by up to 28 %. Where a sixth of them is empty, lists are.
bool are_large_tiles_best(const Use& use, const RowLengths& rows) {
  constexpr double kMany = 5;  // for each SM
  constexpr std::int64_t kShortRow = 24;
  if (!has_wide_heads(use)) {
    return false;
  }
  const std::int64_t queries = 2 * mask::kTile * mask::ceil_div(use.dim("q_len"), 2 * mask::kTile);
  const double fill = static_cast<double>(use.dim("q_len")) / static_cast<double>(queries);
  const bool are_short = fill > 0.87 && rows.longest <= kShortRow && has_rows_of(use, 16) &&
                         (rows.grow || columns(use) <= kMostColumns);
  return fill > 0.83 && tiles_per_sm(use) >= (are_short ? kManyWideTiles : kMany);
}

// Whether tiles of narrow heads that see more keys from one to the next, as causal ones do, and
// many, want four blocks an SM: where a batch element alone has tiles for all SMs. Then they are
// up to 20 % faster than lists, whose tiles of 128 or 192 queries leave SMs over.
bool are_small_tiles_best(const Use& use, std::int64_t keys) {
  constexpr double kMost = 12;  // for each SM, as was timed
  constexpr double kOfElement = 2.5;
  constexpr std::int64_t kMostOfShortRow = 1024;
  return has_rows_of(use, 16) && keys > kMostOfShortRow && tiles_per_sm(use) < kMost &&
         tiles_per_sm(use) >= kOfElement * static_cast<double>(use.dim("batch"));
}

// By times on an H200, L2 flushed, of prefixes, documents, chunks and frames. Few tiles want what
// uneven bands do; many narrow ones lists, and long rows that do not grow, which lists begin with.
// Rows that all see as many keys, which were not timed, have what bands that see all keys have.
// Of a mask that arrives on each run, for one attention, lists have to be made first, which takes
// longer than what they save.
std::optional<KernelConfig> config_by_tiles(const Use& use, const RowLengths& rows,
                                            bool needs_lists) {
  constexpr double kFewThatGrow = 6;  // for each SM
  constexpr double kLeastWide = 3;
  constexpr std::int64_t kLongestRow = 20;
  const std::int64_t keys = rows.longest * mask::kTile;
  const bool are_many_wide = has_wide_heads(use) && tiles_per_sm(use) >= kManyWideTiles;
  if (are_large_tiles_best(use, rows)) {
    return large_setting();
  }
  const bool are_lists_faster = (!rows.grow && (rows.longest > kLongestRow || are_many_wide)) ||
                                (are_many_wide && columns(use) > kMostColumns);
  if (needs_lists && has_wide_heads(use) && tiles_per_sm(use) >= kLeastWide) {
    return large_setting();
  }
  if (are_lists_faster && !needs_lists) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config;
  if (tiles_per_sm(use) < (rows.grow ? kFewThatGrow : kFewTilesPerSm)) {
    config = config_of_few_tiles(use, keys, rows.are_even());
  } else if (needs_lists || (rows.grow && !rows.are_even() && !has_wide_heads(use) &&
                             are_small_tiles_best(use, keys))) {
    config = config_of_many_narrow_tiles();
  }
  return config ? std::optional(of_band_setting(*config)) : std::nullopt;
}

// Whether the longest rows of several batch elements are best side by side, as along bands, but
// for more of the many short heads, which take 3 to 6 % less one after the other.
bool has_longest_of_elements_first(const Use& use, const RowLengths& rows) {
  constexpr double kManyTiles = 15;  // for each SM
  constexpr std::int64_t kLongQueries = 768;
  return !rows.are_even() && has_longest_first(use) &&
         (tiles_per_sm(use) < kManyTiles || use.dim("q_len") >= kLongQueries);
}

}  // namespace

bool has_interval_rule(const contract::TemplateContract& contract) {
  return takes_intervals(contract) && has_names(contract, large_setting());
}

std::optional<KernelConfig> setting_for_intervals(const Use& use, const AttentionMask& mask) {
  constexpr double kLongestOfMean = 4;
  constexpr double kMostBetween = 1.05;
  // Few queries have a kernel of their own.
  if ((!mask.run_time && mask.arrays->band()) || use.dim("q_len") <= 2 * cost::kFewQueryRows) {
    return std::nullopt;
  }
  // Lists begin with the longest rows, and share out those that take long.
  const RowLengths rows = row_lengths(use, mask);
  const bool has_long_rows = static_cast<double>(rows.longest) > kLongestOfMean * rows.mean ||
                             leaves_sms_idle(use, rows.mean, !rows.are_even());
  const bool needs_lists = mask.run_time && mask.run_time->readers == 1;
  if (rows.mean > kVeryLongRow || (has_long_rows && !needs_lists)) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config = config_by_tiles(use, rows, needs_lists);
  if (config && config->at("order") == 0 && has_longest_of_elements_first(use, rows)) {
    config->at("order") = 1;
  }
  if (config && mask.modifier.has_score()) {
    config = interval_setting_for_scores(use, *std::move(config), mask.modifier);
  }
  if (!config || !is_setting(use, *config) ||
      tiles_between(mask.known()->tiles(config->at("tile_q"))) > kMostBetween) {
    return std::nullopt;
  }
  return config;
}

}  // namespace stof::fusion
