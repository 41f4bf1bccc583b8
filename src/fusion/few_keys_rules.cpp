#include "fusion/few_keys_rules.hpp"

#include <cstdint>
#include <string_view>

#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

constexpr std::int64_t kRows = 16;  // queries of a block

KernelConfig few_keys_setting(std::int64_t warps, std::int64_t pieces) {
  return KernelConfig{{"warps", warps}, {"pieces", pieces}};
}

// By its name too: its parameters may well be a user's.
bool is_few_keys(const contract::TemplateContract& contract, std::string_view name) {
  return contract.name == name && has_names(contract, few_keys_setting(0, 0));
}
bool is_for_bands(const contract::TemplateContract& contract) {
  return is_few_keys(contract, "attention_few_keys");
}
bool is_for_bits(const contract::TemplateContract& contract) {
  return is_few_keys(contract, "attention_few_keys_bits");
}

// With all keys of 16 queries at once, which are so many.
std::optional<KernelConfig> setting_of_keys(std::int64_t keys) {
  constexpr std::int64_t kWarps = 4;
  constexpr std::int64_t kPieceKeys = 16;
  constexpr std::int64_t kMostPieces = 4;
  const std::int64_t pieces = mask::ceil_div(keys, kWarps * kPieceKeys);
  return pieces <= kMostPieces ? std::optional(few_keys_setting(kWarps, pieces)) : std::nullopt;
}

}  // namespace

bool has_few_keys(const contract::TemplateContract& contract) {
  return is_for_bands(contract) || is_for_bits(contract);
}

// By times on an H200: not where larger query tiles, which read less, have blocks enough for all
// SMs too.
std::optional<KernelConfig> few_keys_of_band(const Use& use) {
  if (!is_for_bands(use.kernel->contract)) {
    return std::nullopt;
  }
  std::optional<KernelConfig> config = setting_of_keys(keys_of_queries(use, kRows));
  const double most = config && config->at("pieces") == 1 ? 3.0 : 1.5;
  return static_cast<double>(query_tiles(use, kRows)) <= most * static_cast<double>(sm_count(use))
             ? config
             : std::nullopt;
}

// By times on an H200: the SM with the most blocks takes so long for tiles of 16 queries and 64
// keys that lists with tiles of 64 queries, which take 7 to 9 us however few they are, are as fast.
std::optional<KernelConfig> few_keys_by_bits(const Use& use, const AttentionMask& mask) {
  constexpr double kMostTiles = 10;  // of 64 dimensions
  if (!is_for_bits(use.kernel->contract) || mask.arrays->band()) {
    return std::nullopt;
  }
  const std::int64_t queue = mask::ceil_div(query_tiles(use, kRows), sm_count(use));
  const double tiles = static_cast<double>(use.dim("kv_len")) / mask::kTile *
                       static_cast<double>(queue * mask::ceil_div(columns(use), mask::kTile));
  std::optional<KernelConfig> config = setting_of_keys(use.dim("kv_len"));
  return config && tiles <= kMostTiles && is_setting(use, *config) ? config : std::nullopt;
}

}  // namespace stof::fusion
