#include "fusion/interval_rules.hpp"

#include <cstddef>
#include <cstdint>

#include "cost/model.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

KernelConfig interval_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t stages,
                              std::int64_t blocks_per_sm, std::int64_t overlap) {
  return KernelConfig{{"tile_q", tile_q},
                      {"tile_k", tile_k},
                      {"stages", stages},
                      {"blocks_per_sm", blocks_per_sm},
                      {"overlap", overlap}};
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

// By times of documents of 300 to 1100 tokens on an H100, L2 flushed. Tiles of 128 queries, of
// which an SM has two blocks, take 7 to 30 % less than lists with heads of 80 to 128 dimensions. Of
// few query tiles those of 64 whose products overlap take up to 12 % less; in between, where narrow
// heads have many, and of few long rows lists are faster.
std::optional<KernelConfig> config_by_tiles(const Use& use, std::int64_t longest_row) {
  constexpr double kMany = 5;  // for each SM
  constexpr double kFew = 2;
  constexpr double kFewNarrow = 3;
  constexpr std::int64_t kLongestRow = 24;  // tiles of keys
  const double per_sm = tiles_per_sm(use);
  if (has_wide_heads(use) && per_sm >= kMany) {
    return has_one_tile(use) ? std::nullopt : std::optional(interval_setting(128, 64, 2, 2, 0));
  }
  if (longest_row > kLongestRow) {
    return std::nullopt;
  }
  if (has_wide_heads(use)) {
    return per_sm <= kFew ? std::optional(interval_setting(64, 64, 3, 2, 1)) : std::nullopt;
  }
  if (per_sm > kFewNarrow || !has_rows_of(use, 16)) {
    return std::nullopt;
  }
  return per_sm <= kFew ? interval_setting(64, 128, 3, 2, 1) : interval_setting(64, 128, 2, 3, 0);
}

}  // namespace

bool has_interval_rule(const contract::TemplateContract& contract) {
  return takes_intervals(contract) && has_names(contract, interval_setting(0, 0, 0, 0, 0));
}

std::optional<KernelConfig> setting_for_intervals(const Use& use, const AttentionMask& mask) {
  constexpr double kLongestOfMean = 4;
  constexpr double kMostBetween = 1.05;
  if (!mask.arrays || mask.arrays->band()) {
    return std::nullopt;
  }
  // Lists begin with the longest rows, and share out those that take long; and few queries have a
  // kernel of their own.
  const double per_row = tiles_per_row(use, mask);
  const std::int64_t longest_row = mask.features().longest_tile_row;
  if (per_row > kVeryLongRow || static_cast<double>(longest_row) > kLongestOfMean * per_row ||
      leaves_sms_idle(use, per_row) || use.dim("q_len") <= 2 * cost::kFewQueryRows) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config = config_by_tiles(use, longest_row);
  if (!config || !is_setting(use, *config) ||
      tiles_between(mask.arrays->tiles(config->at("tile_q"))) > kMostBetween) {
    return std::nullopt;
  }
  return config;
}

}  // namespace stof::fusion
