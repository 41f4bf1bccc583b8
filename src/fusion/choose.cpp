#include "fusion/choose.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "fusion/choose_matmul.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

// Below this, lists of keys are less work than tiles.
constexpr double kKeysPerTile = 64;

constexpr std::string_view kHopperAttention = "attention_block_wise_sm90";

// How far a setting is from the default: steps along the values of each parameter.
std::int64_t distance(const contract::TemplateContract& contract,
                      const kernel::KernelConfig& config) {
  std::int64_t steps = 0;
  for (const kernel::ConfigParameter& parameter : contract.params) {
    const auto place = [&](std::int64_t value) {
      return std::find(parameter.values.begin(), parameter.values.end(), value) -
             parameter.values.begin();
    };
    steps += std::abs(place(config.at(parameter.name)) - place(parameter.default_value));
  }
  return steps;
}

// Of 64 query rows each.
std::int64_t query_tiles(const Use& use) {
  return use.dim("batch") * use.dim("heads") * mask::ceil_div(use.dim("q_len"), mask::kTile);
}

// Of the kernel for Hopper, by times on an H200. Small blocks, several to an SM, hide each other's
// waits and look at no more tiles than the mask has; tall ones read keys less often, which long
// rows of wide heads, or of all keys, want.
void adjust_hopper(const Use& use, const AttentionMask& mask, kernel::KernelConfig& config) {
  constexpr double kDense = 0.75;
  constexpr double kLongRow = 12;  // active tiles of 64 query rows
  const auto set = [&](std::int64_t tile_q, std::int64_t tile_k, std::int64_t blocks_per_sm,
                       bool overlaps) {
    config["tile_q"] = tile_q;
    config["tile_k"] = tile_k;
    config["blocks_per_sm"] = blocks_per_sm;
    config["overlap"] = overlaps ? 1 : 0;
    config["query_slots"] = 2;
  };
  const std::int64_t sm_count = use.scope.device.at("device.sm_count");
  const std::int64_t width = std::max(use.dim("head_dim"), use.dim("value_dim"));
  const mask::MaskFeatures& features = mask.features();
  const double per_row = static_cast<double>(features.full_tiles + features.part_tiles) /
                         static_cast<double>(features.tiles) *
                         static_cast<double>(mask::ceil_div(use.dim("kv_len"), mask::kTile));
  if (width > 2 * mask::kTile) {
    return;
  }
  if (width > mask::kTile) {
    const bool is_tall = per_row >= kLongRow && query_tiles(use) >= 4 * sm_count;
    set(is_tall ? 128 : 64, is_tall ? 128 : 64, is_tall ? 1 : 2, true);
  } else if (query_tiles(use) < 6 * sm_count) {
    set(64, 64, 3, true);
  } else if (per_row >= kLongRow && features.density > kDense) {
    set(192, 128, 1, true);
  } else {
    set(64, 64, 4, false);
  }
}

// Of the tiled kernel, by times on an H200: tall tiles where most keys are seen, and two groups of
// warps that share the keys of a tile where tiles are too few for the GPU and long.
void adjust_attention(const Use& use, const AttentionMask& mask, kernel::KernelConfig& config) {
  constexpr double kDense = 0.4;
  constexpr std::int64_t kLongRow = 6;
  const auto set = [&](const char* parameter, std::int64_t value) {
    if (config.contains(parameter)) {
      config[parameter] = value;
    }
  };
  const std::int64_t tiles = query_tiles(use);
  const std::int64_t sm_count = use.scope.device.at("device.sm_count");
  if (tiles < 3 * sm_count) {
    set("key_groups", mask.features().longest_tile_row > kLongRow ? 2 : 1);
  } else if (mask.features().density > kDense && tiles >= 8 * sm_count) {
    set("tile_q", 128);
    set("tile_k", use.dim("head_dim") > mask::kTile ? 32 : 64);
  }
}

// Of an active 64 x 64 tile; all where nothing is known of the mask.
double keys_per_tile(const mask::MaskFeatures& features) {
  constexpr double kTilePairs = 64.0 * 64.0;
  return features.density * static_cast<double>(features.tiles) * kTilePairs /
         static_cast<double>(features.full_tiles + features.part_tiles);
}

}  // namespace

bool reads_key_rows(const Use& use) {
  return use.kernel->contract.takes_mask_array("key_col");
}

std::size_t choose_use(const std::vector<Use>& uses, const AttentionMask* mask) {
  STOF_CHECK(!uses.empty()) << "nothing to choose from";
  const bool wants_lists = mask != nullptr && keys_per_tile(mask->features()) < kKeysPerTile;
  const auto rank = [&](const Use& use) {
    if (mask != nullptr) {
      const bool is_for_hopper = use.kernel->contract.name == kHopperAttention;
      const bool fills_hopper = query_tiles(use) >= use.scope.device.at("device.sm_count");
      return 2 * static_cast<int>(reads_key_rows(use) == wants_lists) +
             static_cast<int>(is_for_hopper == fills_hopper);
    }
    // A template that takes fewer cases is made for them.
    constexpr int kAboveMatmul = 100;
    const auto constraints = static_cast<int>(use.kernel->contract.constraints.size());
    return matmul_rank(use).value_or(kAboveMatmul + constraints);
  };
  const auto best = std::max_element(uses.begin(), uses.end(),
                                     [&](const Use& a, const Use& b) { return rank(a) < rank(b); });
  return static_cast<std::size_t>(best - uses.begin());
}

std::optional<kernel::KernelConfig> choose_config(const Use& use, const AttentionMask* mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  contract::ContractScope scope = use.scope;
  scope.config = choose_matmul_config(use);
  if (mask != nullptr) {
    scope.config = contract::default_config(contract);
    if (contract.name == kHopperAttention) {
      adjust_hopper(use, *mask, scope.config);
    } else {
      adjust_attention(use, *mask, scope.config);
    }
  }
  if (!scope.config.empty() && contract::is_allowed(contract, scope)) {
    return scope.config;
  }
  scope.config = contract::default_config(contract);
  if (contract::is_allowed(contract, scope)) {
    return scope.config;
  }
  const auto configs = contract::allowed_configs(contract, scope);
  const auto nearest = std::min_element(
      configs.begin(), configs.end(),
      [&](const auto& a, const auto& b) { return distance(contract, a) < distance(contract, b); });
  return nearest == configs.end() ? std::nullopt : std::optional(*nearest);
}

}  // namespace stof::fusion
