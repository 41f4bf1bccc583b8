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

constexpr std::int64_t kStep = mask::kTile;  // keys; more have no registers left

bool takes_tiles_of_blocks(const KernelConfig& config) {
  return std::ranges::all_of(std::array{"blocks_per_sm", "tile_q", "tile_k", "overlap"},
                             [&](const char* name) { return config.contains(name); });
}

}  // namespace

std::optional<KernelConfig> band_setting_for_scores(const Use& use, KernelConfig config,
                                                    const Modifier& modifier) {
  // Of wide heads lists take 3 to 30 % less, but for pairs in large tiles (4 % more).
  if (has_wide_heads(use)) {
    return std::nullopt;
  }
  const std::int64_t tile_q = config.at("tile_q");
  if (config.at("step") > kStep) {
    const bool is_window = config.at("stages") == 1 && use.dim("kv_len") > config.at("tile_k");
    const std::int64_t keys =
        is_window ? keys_of_queries(use, mask::kTile) : config.at("tile_k") - tile_q + mask::kTile;
    config.at("tile_k") = mask::ceil_div(keys, kStep) * kStep + tile_q - mask::kTile;
    config.at("step") = kStep;
    if (is_window) {
      config.at("order") = 3;  // tiles of a head side by side: up to 6 % less
    }
  }
  // Beside three stages and tiles of biases an SM has room for one block.
  if (modifier.has_tiles() && config.at("stages") > 2) {
    config.at("stages") = 2;
    config.at("overlap") = 0;
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

bool leaves_registers(const Use& use, const KernelConfig& config, const Modifier& modifier) {
  if (modifier.arguments().empty() || !takes_tiles_of_blocks(config)) {
    return true;
  }
  const bool has_small_tiles =
      config.at("tile_q") == mask::kTile && config.at("tile_k") == mask::kTile;
  // Beside more slots there may be no shared memory for tiles.
  constexpr std::int64_t kMostSlots = 4;
  const auto slots = config.find("slots");
  const bool has_room =
      !modifier.has_tiles() || slots == config.end() || slots->second <= kMostSlots;
  const std::int64_t blocks = config.at("blocks_per_sm");
  const bool are_three = blocks == 3 && config.at("overlap") == 0 && modifier.has_score() &&
                         (!has_wide_heads(use) || !modifier.score_reads_by_key());
  return has_room && has_small_tiles && (blocks < 3 || are_three);
}

}  // namespace stof::fusion
