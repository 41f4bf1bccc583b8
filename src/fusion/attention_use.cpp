#include "fusion/attention_use.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "mask/bits.hpp"

namespace stof::fusion {

bool reads_key_rows(const contract::TemplateContract& contract) {
  return contract.takes_mask_array("key_col") || reads_windows(contract);
}

bool reads_windows(const contract::TemplateContract& contract) {
  return contract.takes_mask_array("window_col");
}

bool packs(const contract::TemplateContract& contract) {
  return contract.takes_mask_array("packed_keys");
}

bool takes_bands(const contract::TemplateContract& contract) {
  return contract.reads("mask.band_first");
}

bool takes_intervals(const contract::TemplateContract& contract) {
  const auto takes = [&](const char* array) { return contract.takes_mask_array(array); };
  return (takes("row_first") || takes("row_end")) && !takes("tile_col") && !packs(contract) &&
         !reads_key_rows(contract);
}

bool takes_global_tokens(const contract::TemplateContract& contract) {
  const auto is_of_them = [](std::string_view name) {
    return name.starts_with("local_") || name.starts_with("global_");
  };
  const std::vector<contract::Argument>& arguments = contract.launch.arguments;
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const contract::Argument& argument) {
                       return argument.kind == contract::ArgumentKind::Mask &&
                              is_of_them(argument.name);
                     }) ||
         std::any_of(contract.scalars_read.begin(), contract.scalars_read.end(),
                     [&](std::string_view scalar) {
                       constexpr std::string_view kMask = "mask.";
                       return scalar.starts_with(kMask) && is_of_them(scalar.substr(kMask.size()));
                     });
}

bool takes_all_bitmaps(const contract::TemplateContract& contract) {
  return contract.takes_mask_array("all_bitmaps");
}

std::int64_t sm_count(const Use& use) {
  return use.scope.device.at("device.sm_count");
}

std::int64_t query_tiles(const Use& use, std::int64_t rows) {
  return use.dim("batch") * use.dim("heads") * mask::ceil_div(use.dim("q_len"), rows);
}

double tiles_per_sm(const Use& use) {
  return static_cast<double>(query_tiles(use)) / static_cast<double>(sm_count(use));
}

bool leaves_places(std::int64_t blocks, std::int64_t at_once, double many) {
  return static_cast<double>(mask::ceil_div(blocks, at_once) * at_once) >
         many * static_cast<double>(blocks);
}

std::int64_t rows_of_waves(const Use& use, std::int64_t rows, std::int64_t at_once) {
  return mask::ceil_div(query_tiles(use, rows), at_once) * at_once * rows;
}

std::int64_t columns(const Use& use) {
  return std::max(use.dim("head_dim"), use.dim("value_dim"));
}

bool has_wide_heads(const Use& use) {
  return columns(use) > mask::kTile;
}

bool has_rows_of(const Use& use, std::int64_t dims) {
  return use.dim("head_dim") % dims == 0 && use.dim("value_dim") % dims == 0;
}

bool has_one_tile(const Use& use) {
  return use.dim("q_len") <= mask::kTile;
}

bool has_many_heads_of_128(const Use& use) {
  return !has_one_tile(use) && use.dim("q_len") <= 2 * mask::kTile &&
         query_tiles(use, 2 * mask::kTile) > 2 * sm_count(use);
}

mask::Band band_of(const Use& use) {
  return {use.scope.mask_band_first, use.scope.mask_band_end};
}

std::int64_t keys_of_queries(const Use& use, std::int64_t queries) {
  const mask::Band band = band_of(use);
  return std::min(use.dim("kv_len"), queries - 1 + band.end - band.first);
}

bool has_open_side(const Use& use, const mask::Band& band) {
  return band.first <= 1 - use.dim("q_len") || band.end >= use.dim("kv_len");
}

bool sees_all(const Use& use, const mask::Band& band) {
  return band.first <= 1 - use.dim("q_len") && band.end >= use.dim("kv_len");
}

bool has_even_rows(const Use& use, double per_row) {
  constexpr double kEven = 0.75;
  constexpr std::int64_t kLongWindow = 8;  // tiles
  const std::int64_t most = mask::ceil_div(keys_of_queries(use, mask::kTile), mask::kTile);
  const bool is_short_window = !has_open_side(use, band_of(use)) && most <= kLongWindow;
  return is_short_window || per_row >= kEven * static_cast<double>(most);
}

bool leaves_sms_idle(const Use& use, double per_row, bool is_uneven) {
  constexpr double kLongUneven = 16;
  const double idle = 1 - 6.0 / 7 * tiles_per_sm(use);
  if (is_uneven && per_row >= kLongUneven) {
    return idle * per_row > (has_wide_heads(use) ? 12 : 9);
  }
  return idle * per_row > (has_wide_heads(use) ? 25 : 15);
}

double tiles_per_row(const Use& use, const AttentionMask& mask) {
  const mask::MaskFeatures& features = mask.features();
  return static_cast<double>(features.active_tiles()) / static_cast<double>(features.tiles) *
         static_cast<double>(mask::ceil_div(use.dim("kv_len"), mask::kTile));
}

}  // namespace stof::fusion
