#include "fusion/global_token_rules.hpp"

#include <algorithm>
#include <cstdint>

#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

KernelConfig global_local_setting(std::int64_t tile_k, std::int64_t global_keys,
                                  std::int64_t global_tiles, std::int64_t slots,
                                  std::int64_t query_slots) {
  return KernelConfig{{"tile_k", tile_k},
                      {"global_keys", global_keys},
                      {"global_tiles", global_tiles},
                      {"slots", slots},
                      {"query_slots", query_slots}};
}

KernelConfig resident_setting(std::int64_t groups, std::int64_t local_boxes,
                              std::int64_t global_boxes, std::int64_t cluster) {
  return KernelConfig{{"groups", groups},
                      {"local_boxes", local_boxes},
                      {"global_boxes", global_boxes},
                      {"cluster", cluster}};
}

// Of how many query tiles an SM a walk along windows with global tokens is worth while, by times
// on an H200, and of narrow heads on an H100, where heads have so many: with two tiles of global
// queries a block has more to do when it begins and ends. Lists read wide heads three times over.
std::int64_t least_for_walk(std::int64_t tiles_per_head, std::int64_t global_tiles, bool is_wide) {
  constexpr std::int64_t kTilesOfLongHeads = 32;
  if (global_tiles > 1) {
    return is_wide ? 12 : 16;
  }
  if (tiles_per_head > kTilesOfLongHeads) {
    return is_wide ? 7 : 12;
  }
  return is_wide ? 5 : 8;
}

// Of the kernel that does so: their keys in whole steps, and as many slots as are allowed. Nothing
// where query tiles are too few, or heads so short that blocks go from one to the next all the
// time.
std::optional<KernelConfig> global_local_config(const Use& use) {
  constexpr std::int64_t kStep = 32;
  constexpr std::int64_t kTilesPerHead = 16;
  const contract::ContractScope& scope = use.scope;
  const std::int64_t tiles_per_head = mask::ceil_div(use.dim("q_len"), mask::kTile);
  if (tiles_per_head < kTilesPerHead ||
      query_tiles(use) <
          least_for_walk(tiles_per_head, scope.mask_global_tiles, has_wide_heads(use)) *
              scope.device.at("device.sm_count")) {
    return std::nullopt;
  }
  const auto steps = [](std::int64_t keys, std::int64_t least) {
    return std::max(least, mask::ceil_div(keys, kStep) * kStep);
  };
  for (const std::int64_t slots : {10, 9, 8, 4, 3}) {
    const KernelConfig config = global_local_setting(
        steps(scope.mask_local_keys, mask::kTile), steps(scope.mask_global_keys, kStep),
        scope.mask_global_tiles, slots, has_wide_heads(use) ? 3 : 4);
    if (is_setting(use, config)) {
      return config;
    }
  }
  return std::nullopt;
}

// How many blocks of clusters have an SM each at a time. A cluster lies in one of the GPCs of a
// GPU, which have at least so many SMs.
std::int64_t blocks_with_an_sm(const contract::ContractScope& scope, std::int64_t cluster) {
  constexpr std::int64_t kGpcSms = 16;
  const std::int64_t sm_count = scope.device.at("device.sm_count");
  return cluster == 1 ? sm_count : sm_count / kGpcSms * (kGpcSms / cluster) * cluster;
}

// Of the kernel for the same masks that has all keys of a block resident. Nothing where blocks are
// too many to have an SM each, or keys so few that lists are faster.
std::optional<KernelConfig> resident_config(const Use& use) {
  constexpr std::int64_t kMostBlocks = 8;  // of a cluster
  constexpr std::int64_t kMostOfLists = 2;
  contract::ContractScope scope = use.scope;
  const auto boxes = [](std::int64_t keys) { return mask::ceil_div(keys, mask::kTile); };
  if (boxes(use.dim("kv_len")) <= kMostOfLists) {
    return std::nullopt;
  }
  const std::int64_t local = std::max<std::int64_t>(boxes(scope.mask_local_keys), 1);
  const std::int64_t global = boxes(scope.mask_global_keys);
  for (const std::int64_t groups : {2, 3}) {
    const std::int64_t parts =
        mask::ceil_div(boxes(use.dim("kv_len")), groups - 1 + local + global);
    const std::int64_t cluster = scope.mask_global_tiles == 0
                                     ? 1
                                     : mask::ceil_div(parts, mask::ceil_div(parts, kMostBlocks));
    scope.config = resident_setting(groups, local, global, cluster);
    if (!is_setting(use, scope.config)) {
      continue;
    }
    const auto [x, y, z] = contract::evaluate_launch(use.kernel->contract, scope).grid;
    if (x * y * z <= blocks_with_an_sm(scope, cluster)) {
      return scope.config;
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_global_token_rule(const contract::TemplateContract& contract) {
  return takes_global_tokens(contract) &&
         (has_names(contract, global_local_setting(0, 0, 0, 0, 0)) ||
          has_names(contract, resident_setting(0, 0, 0, 0)));
}

std::optional<KernelConfig> setting_for_global_tokens(const Use& use) {
  return has_names(use.kernel->contract, resident_setting(0, 0, 0, 0)) ? resident_config(use)
                                                                       : global_local_config(use);
}

}  // namespace stof::fusion
