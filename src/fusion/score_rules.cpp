#include "fusion/score_rules.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

constexpr std::int64_t kStep = mask::kTile;  // keys; more may have no registers left
constexpr std::int64_t kWholeRows = 16;      // columns; others take as long to load as more do

bool takes_tiles_of_blocks(const KernelConfig& config) {
  return std::ranges::all_of(std::array{"blocks_per_sm", "tile_q", "tile_k", "overlap"},
                             [&](const char* name) { return config.contains(name); });
}

// Bands in tiles of so many queries and 64 keys, of two blocks an SM.
KernelConfig with_tiles_of(std::int64_t rows, std::int64_t overlap, std::int64_t order) {
  return {{"tile_q", rows},     {"tile_k", kStep},  {"step", kStep},
          {"key_groups", 1},    {"stages", 2},      {"blocks_per_sm", 2},
          {"overlap", overlap}, {"late_values", 0}, {"order", order}};
}

// Of heads of 65 to 128 dimensions, by times of 120 shapes, most of them drawn at random, on an
// H200: where lists take as long or up to half as long again.
std::optional<KernelConfig> setting_of_wide_bands(const Use& use, const KernelConfig& config,
                                                  const Modifier& modifier) {
  constexpr std::int64_t kWidest = 128;
  constexpr std::int64_t kMostOfOneTile = 1024;  // keys; of more, lists have parts
  constexpr std::int64_t kLarge = 2 * mask::kTile;
  if (columns(use) > kWidest) {
    return std::nullopt;
  }
  const mask::Band band = band_of(use);
  const bool is_window = !has_open_side(use, band);
  if (config.at("key_groups") > 1) {
    const bool are_parts = has_one_tile(use) && use.dim("kv_len") > kMostOfOneTile;
    KernelConfig few = config;
    few.at("stages") = modifier.tile_count() > 1 ? 2 : config.at("stages");
    return are_parts || (is_window && modifier.has_tiles()) ? std::nullopt : std::optional(few);
  }
  if (config.at("stages") == 1) {
    const bool is_short = !is_window || keys_of_queries(use, mask::kTile) <= kLarge;
    return is_short               ? std::optional(with_tiles_of(mask::kTile, 1, 0))
           : modifier.has_tiles() ? std::nullopt
                                  : std::optional(with_tiles_of(kLarge, 0, 0));
  }
  constexpr std::int64_t kShort = 512;
  if (config.at("tile_q") == mask::kTile || use.dim("kv_len") < kShort) {
    return std::nullopt;
  }
  const bool has_tiles_to_read = modifier.has_tiles() && !is_window;
  if (config.at("overlap") == 1) {
    KernelConfig overlapped = config;
    overlapped.at("stages") = 3;
    return has_tiles_to_read ? std::optional(overlapped) : std::nullopt;
  }
  const bool is_even = sees_all(use, band);
  const bool is_large =
      modifier.has_tiles() ? has_tiles_to_read : !is_even || modifier.score_reads_by_key();
  const bool is_by_element = !is_window && !is_even && use.dim("batch") > 1;
  return is_large || !has_rows_of(use, kWholeRows)
             ? std::optional(with_tiles_of(kLarge, 0, is_by_element ? 1 : config.at("order")))
             : std::nullopt;
}

// Lists of heads of more than 128 dimensions, whose blocks share an SM, and have no room for a
// fourth slot.
bool are_two_of_wide_heads(const Use& use, const KernelConfig& config) {
  constexpr std::int64_t kWidest = 128;
  const auto slots = config.find("slots");
  return slots != config.end() && slots->second == 3 && config.at("blocks_per_sm") == 2 &&
         columns(use) > kWidest;
}

}  // namespace

std::optional<KernelConfig> band_setting_for_scores(const Use& use, KernelConfig config,
                                                    const Modifier& modifier) {
  if (has_wide_heads(use)) {
    const std::optional<KernelConfig> wide = setting_of_wide_bands(use, config, modifier);
    return wide && is_setting(use, *wide) ? wide : std::nullopt;
  }
  const bool is_light = !modifier.score_takes_registers() && !modifier.score_reads_by_key();
  const bool is_window = config.at("stages") == 1 && use.dim("kv_len") > config.at("tile_k");
  if (is_window) {
    config.at("order") = 3;  // tiles of a head side by side: up to 6 % less
  }
  if (config.at("step") > kStep && !is_light) {
    const std::int64_t tile_q = config.at("tile_q");
    const std::int64_t keys =
        is_window ? keys_of_queries(use, mask::kTile) : config.at("tile_k") - tile_q + mask::kTile;
    config.at("tile_k") = mask::ceil_div(keys, kStep) * kStep + tile_q - mask::kTile;
    config.at("step") = kStep;
  }
  // Beside three stages and tiles of biases an SM has room for one block; of two stages and 64
  // queries for three, where tiles are of one mask of bytes: a thread has 151 registers.
  if (modifier.has_tiles() && config.at("stages") > 2) {
    config.at("stages") = 2;
    config.at("overlap") = 0;
    const bool is_small = config.at("tile_q") == mask::kTile && config.at("key_groups") == 1;
    if (is_small && modifier.tile_count() == 1 && modifier.score_reads_bytes_alone() &&
        !modifier.score_takes_registers()) {
      config.at("blocks_per_sm") = 3;
    }
  }
  return is_setting(use, config) ? std::optional(config) : std::nullopt;
}

// Of many tiles lists take up to 20 % less.
std::optional<KernelConfig> interval_setting_for_scores(const Use& use, KernelConfig config,
                                                        const Modifier& modifier) {
  const bool are_few = config.at("key_groups") > 1;
  return are_few && !has_wide_heads(use) && !modifier.has_tiles() ? std::optional(std::move(config))
                                                                  : std::nullopt;
}

bool suits_modifier(const Use& use, const KernelConfig& config, const AttentionMask& mask) {
  const Modifier& modifier = mask.modifier;
  if (are_two_of_wide_heads(use, config)) {
    // Overlap gains more where nothing else is done; and few tiles have an SM each.
    constexpr double kMany = 4;
    return modifier.has_score() && tiles_per_sm(use) >= kMany;
  }
  if (modifier.arguments().empty() || !takes_tiles_of_blocks(config)) {
    return true;
  }
  const bool is_band = mask.arrays && mask.arrays->band();
  if (config.at("tile_q") != mask::kTile || config.at("tile_k") != mask::kTile) {
    return is_band && modifier.has_score() && !modifier.has_tiles() &&
           !has_rows_of(use, kWholeRows);
  }
  if (config.at("overlap") == 1 || !modifier.has_score()) {
    return config.at("blocks_per_sm") <= 2;
  }
  constexpr std::int64_t kWidestOfFour = 48;
  constexpr std::int64_t kWidestOfThree = 96;
  const bool has_bitmaps = mask.features().mask_class == mask::MaskClass::Bitmap;
  const bool takes_many =
      modifier.score_takes_registers() || (modifier.has_tiles() && !has_bitmaps);
  const bool are_four = !has_wide_heads(use) && !modifier.score_reads_bytes_alone() &&
                        (!takes_many || columns(use) <= kWidestOfFour);
  const bool are_three = !modifier.score_takes_registers() || columns(use) <= kWidestOfThree;
  return config.at("blocks_per_sm") <= (are_four ? 4 : are_three ? 3 : 2);
}

}  // namespace stof::fusion
