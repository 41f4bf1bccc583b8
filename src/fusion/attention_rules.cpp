#include "fusion/attention_rules.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "fusion/attention_use.hpp"
#include "fusion/band_rules.hpp"
#include "fusion/few_keys_rules.hpp"
#include "fusion/global_token_rules.hpp"
#include "fusion/interval_rules.hpp"
#include "fusion/score_rules.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Rows of more tiles leave nothing to pack, and lists of their groups take long to make.
constexpr double kMostPackedTiles = 24;

bool has_rule(const contract::TemplateContract& contract) {
  return has_few_keys(contract) || has_band_rule(contract) || has_interval_rule(contract) ||
         has_global_token_rule(contract);
}

bool is_for_certain_masks(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  return takes_bands(contract) || takes_intervals(contract) || takes_global_tokens(contract) ||
         takes_all_bitmaps(contract);
}

// Of a kernel for certain masks, its setting; nothing where it is not to be taken.
std::optional<KernelConfig> setting_by_rule(const Use& use, const AttentionMask& mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  return takes_bands(contract)           ? setting_for_bands(use, mask)
         : takes_intervals(contract)     ? setting_for_intervals(use, mask)
         : takes_global_tokens(contract) ? setting_for_global_tokens(use)
         : takes_all_bitmaps(contract)   ? few_keys_by_bits(use, mask)
                                         : std::nullopt;
}

// Where a kernel for certain masks has a setting, none of a lower rank is taken. Kernels that visit
// rows of keys may be better than others for bands, but not than those that have all keys at once.
int rank(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  return has_all_keys_at_once(contract) ? 3
         : goes_from_head_to_head(contract) || walks_along_windows(contract) ||
                 reads_key_rows(contract)
             ? 2
         : is_for_certain_masks(use) ? 1
                                     : 0;
}

// Whether rows would gather, from stages, keys of a window, which lie side by side: slower than
// lists on an H200 in eleven windows of 17 keys and more, of heads of more than 128 dimensions.
bool gathers_neighbours(const Use& use, const AttentionMask& mask) {
  constexpr double kFewKeys = 15;  // in the mean
  constexpr std::int64_t kHopper = 90;
  constexpr std::int64_t kNarrowest = 128;
  return use.kernel->contract.name == "attention_row_wise_staged" &&
         use.scope.device.at("device.sm") == kHopper && columns(use) > kNarrowest &&
         !mask.modifier.has_score() && mask.arrays && mask.arrays->band() &&
         !has_open_side(use, *mask.arrays->band()) && mask.features().mean_keys >= kFewKeys;
}

}  // namespace

bool is_in_place(const Use& use, const std::vector<Use>& uses, const AttentionMask& mask) {
  const auto has_list_setting = [&](const Use& one) {
    return list_setting_for_bands(one, mask).has_value();
  };
  if (has_list_setting(use)) {
    return true;
  }
  if (!reads_key_rows(use.kernel->contract) &&
      std::any_of(uses.begin(), uses.end(), has_list_setting)) {
    return false;
  }
  if (is_for_certain_masks(use) && !has_rule(use.kernel->contract)) {
    return true;
  }
  if (is_for_certain_masks(use) && !setting_by_rule(use, mask)) {
    return false;
  }
  const bool is_for_another = std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
    return is_for_certain_masks(other) && rank(other) > rank(use) && setting_by_rule(other, mask);
  });
  return !is_for_another && !gathers_neighbours(use, mask) &&
         !(packs(use.kernel->contract) && tiles_per_row(use, mask) > kMostPackedTiles);
}

std::vector<KernelConfig> settings_by_rules(const Use& use, const AttentionMask& mask,
                                            std::vector<KernelConfig> settings) {
  if (has_rule(use.kernel->contract)) {
    const std::optional<KernelConfig> config = setting_by_rule(use, mask);
    return config ? std::vector{*config} : std::vector<KernelConfig>();
  }
  if (auto config = list_setting_for_bands(use, mask)) {
    return {*std::move(config)};
  }
  std::erase_if(settings,
                [&](const KernelConfig& config) { return !suits_modifier(use, config, mask); });
  return settings;
}

}  // namespace stof::fusion
