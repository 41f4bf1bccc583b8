#include "fusion/choose.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "mask/bits.hpp"

namespace stof::fusion {

bool reads_key_rows(const Use& use) {
  return use.kernel->contract.takes_mask_array("key_col") || reads_windows(use);
}

bool reads_windows(const Use& use) {
  return use.kernel->contract.takes_mask_array("window_col");
}

bool packs(const contract::TemplateContract& contract) {
  return contract.takes_mask_array("packed_keys");
}

bool takes_bands(const contract::TemplateContract& contract) {
  return contract.reads("mask.band_first");
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

bool takes_scores(const contract::TemplateContract& contract) {
  return !packs(contract) && !takes_bands(contract) && !takes_global_tokens(contract);
}

namespace {

using kernel::KernelConfig;

// Predictions that differ by less say nothing.
constexpr double kTie = 0.02;
constexpr std::size_t kShownSettings = 2;  // of each template

// How far a setting is from the default: steps along the values of each parameter.
std::int64_t distance(const contract::TemplateContract& contract, const KernelConfig& config) {
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

bool is_allowed(const contract::TemplateContract& contract, contract::ContractScope& scope,
                const KernelConfig& config) {
  scope.config = config;
  return contract::is_allowed(contract, scope) && !contract::launch_fault(contract, scope);
}

bool has_names(const contract::TemplateContract& contract, const KernelConfig& config) {
  return config.size() == contract.params.size() &&
         std::all_of(contract.params.begin(), contract.params.end(),
                     [&](const auto& parameter) { return config.contains(parameter.name); });
}

// Whether there is one of its values for each parameter, and nothing else.
bool has_parameters(const contract::TemplateContract& contract, const KernelConfig& config) {
  return has_names(contract, config) &&
         std::all_of(contract.params.begin(), contract.params.end(), [&](const auto& parameter) {
           return std::find(parameter.values.begin(), parameter.values.end(),
                            config.at(parameter.name)) != parameter.values.end();
         });
}

// The settings that restrictions allow, those near the default first.
std::vector<KernelConfig> nearest_first(const contract::TemplateContract& contract,
                                        const contract::ContractScope& scope) {
  std::vector<KernelConfig> configs = contract::allowed_configs(contract, scope);
  std::stable_sort(configs.begin(), configs.end(), [&](const auto& a, const auto& b) {
    return distance(contract, a) < distance(contract, b);
  });
  return configs;
}

// The default, else the allowed setting nearest to it.
std::optional<KernelConfig> plain_config(const contract::TemplateContract& contract,
                                         contract::ContractScope& scope) {
  KernelConfig config = contract::default_config(contract);
  if (is_allowed(contract, scope, config)) {
    return config;
  }
  const std::vector<KernelConfig> configs = nearest_first(contract, scope);
  const auto nearest = std::find_if(configs.begin(), configs.end(), [&](const auto& one) {
    return is_allowed(contract, scope, one);
  });
  return nearest == configs.end() ? std::nullopt : std::optional(*nearest);
}

double bytes_of(const View& view) {
  double bytes = size_bytes(view.dtype);
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    bytes *= view.strides[axis] == 0 ? 1 : static_cast<double>(view.extents[axis]);
  }
  return bytes;
}

double bytes_of_ports(const Use& use) {
  double bytes = 0;
  for (const auto& [name, view] : use.ports) {
    bytes += bytes_of(view);
  }
  return bytes;
}

cost::Epilogue epilogue_of(const Use& use, const Chain& chain, const graph::Ir& ir) {
  using graph::OpKind;
  constexpr std::array kTranscendental = {OpKind::Gelu, OpKind::GeluTanh, OpKind::Silu,
                                          OpKind::Tanh, OpKind::Sigmoid,  OpKind::Exp};
  cost::Epilogue epilogue;
  for (const Statement& statement : chain.statements) {
    const OpKind kind = ir.operators[static_cast<std::size_t>(statement.op)].kind;
    epilogue.transcendentals +=
        static_cast<int>(std::count(kTranscendental.begin(), kTranscendental.end(), kind));
  }
  for (const HookTensor& tensor : use.hook) {
    epilogue.bytes += bytes_of(tensor.view);
  }
  return epilogue;
}

// Every field of the scope that a choice may depend on, and no pointer.
void add_text(std::string& text, const contract::ContractScope& scope) {
  const auto out = std::back_inserter(text);
  for (const auto* numbers : {&scope.dims, &scope.strides, &scope.alignments}) {
    for (const auto& [name, value] : *numbers) {
      fmt::format_to(out, "{} {} ", name, value);
    }
  }
  for (const auto& [name, value] : scope.attributes) {
    fmt::format_to(out, "{} {} ", name, value);
  }
  for (const auto& [symbol, dtype] : scope.dtypes) {
    fmt::format_to(out, "{} {} ", symbol, static_cast<int>(dtype));
  }
  fmt::format_to(out, "{} {}\n", scope.mask_batch, scope.mask_heads);
}

std::string problem_text(const std::vector<Use>& uses, const cost::Epilogue& epilogue,
                         const AttentionMask* mask) {
  std::string text = fmt::format("{} {} {}", epilogue.transcendentals, epilogue.bytes,
                                 mask != nullptr && mask->modifier.has_score());
  if (mask != nullptr) {
    const mask::MaskFeatures& features = mask->features();
    text += fmt::format(" {} {} {} {} {} {}", static_cast<int>(features.mask_class),
                        features.full_tiles, features.part_tiles, features.mean_keys,
                        features.max_keys, mask->modifier.arguments().empty());
    text += fmt::format(" {}", mask->modifier.reads_captures());
  }
  for (const Use& use : uses) {
    text += "\n" + use.kernel->file + " ";
    add_text(text, use.scope);
  }
  return text;
}

// Query rows of a tile.
std::int64_t tile_rows(const KernelConfig& config) {
  const auto parameter = config.find("tile_q");
  return parameter == config.end() ? mask::kTile : parameter->second;
}

// Of 64 query rows each.
std::int64_t query_tiles(const Use& use) {
  return use.dim("batch") * use.dim("heads") * mask::ceil_div(use.dim("q_len"), mask::kTile);
}

// Active tiles of 64 keys of 64 query rows, in the mean.
double tiles_per_row(const Use& use, const AttentionMask& mask) {
  const mask::MaskFeatures& features = mask.features();
  return static_cast<double>(features.full_tiles + features.part_tiles) /
         static_cast<double>(features.tiles) *
         static_cast<double>(mask::ceil_div(use.dim("kv_len"), mask::kTile));
}

bool has_wide_heads(const Use& use) {
  return std::max(use.dim("head_dim"), use.dim("value_dim")) > mask::kTile;
}

// Whether a band ends, to one side at least, with the keys and not with what its queries see.
bool has_open_side(const Use& use, std::int64_t band_first, std::int64_t band_end) {
  return band_first <= 1 - use.dim("q_len") || band_end >= use.dim("kv_len");
}

constexpr double kLongRow = 12;  // active tiles of 64 query rows
constexpr double kVeryLongRow = 96;

KernelConfig band_setting(std::int64_t tile_q, std::int64_t tile_k, std::int64_t step,
                          std::int64_t stages, std::int64_t blocks_per_sm,
                          std::int64_t overlap = 0) {
  return KernelConfig{{"tile_q", tile_q},   {"tile_k", tile_k},
                      {"step", step},       {"key_groups", stages == 1 ? 1 : tile_k / step},
                      {"stages", stages},   {"blocks_per_sm", blocks_per_sm},
                      {"overlap", overlap}, {"order", 0}};
}

KernelConfig window_setting(std::int64_t tile_k, std::int64_t groups) {
  return KernelConfig{{"tile_k", tile_k}, {"groups", groups}, {"slots", 10}, {"query_slots", 6}};
}

KernelConfig few_keys_setting(std::int64_t warps, std::int64_t pieces) {
  return KernelConfig{{"warps", warps}, {"pieces", pieces}};
}

KernelConfig held_setting(std::int64_t pieces) {
  return KernelConfig{{"pieces", pieces}};
}

KernelConfig global_local_setting(std::int64_t tile_k, std::int64_t global_keys,
                                  std::int64_t global_tiles, std::int64_t slots) {
  return KernelConfig{{"tile_k", tile_k},
                      {"global_keys", global_keys},
                      {"global_tiles", global_tiles},
                      {"slots", slots}};
}

KernelConfig resident_setting(std::int64_t groups, std::int64_t local_boxes,
                              std::int64_t global_boxes, std::int64_t cluster) {
  return KernelConfig{{"groups", groups},
                      {"local_boxes", local_boxes},
                      {"global_boxes", global_boxes},
                      {"cluster", cluster}};
}

// Whether most rows of a band see as many keys as there are, and not fewer where it is cut.
bool has_even_rows(const Use& use, double per_row) {
  constexpr double kEven = 0.75;
  return !has_open_side(use, use.scope.mask_band_first, use.scope.mask_band_end) ||
         per_row >= kEven * static_cast<double>(mask::ceil_div(use.dim("kv_len"), mask::kTile));
}

// Two warp groups take turns at the keys of a tile. Such a block has an SM to itself, or shares it
// with one more; wide heads then leave room for one warp group each.
KernelConfig lone_band_setting(bool is_wide) {
  return band_setting(64, 128, 64, is_wide ? 3 : 4, 1, 1);
}
KernelConfig shared_band_setting(bool is_wide) {
  return band_setting(64, is_wide ? 64 : 128, 64, 3, 2, 1);
}

// Of tiles with as many keys each, `per_sm` of them for each SM.
std::optional<KernelConfig> few_even_tiles_config(std::int64_t keys, double per_sm, bool is_wide) {
  if (per_sm <= 1) {
    return is_wide || keys > 512 ? lone_band_setting(is_wide) : shared_band_setting(is_wide);
  }
  const std::int64_t most = per_sm <= 2 ? (is_wide ? 1024 : 8192) : (is_wide ? 512 : 1024);
  return keys <= most ? std::optional(shared_band_setting(is_wide)) : std::nullopt;
}

// Of tiles some of which have few keys; the last ones have the most where `keys_grow`.
std::optional<KernelConfig> few_uneven_tiles_config(std::int64_t keys, double per_sm, bool is_wide,
                                                    bool keys_grow) {
  const bool has_few = per_sm <= 4.0 / 3;
  if (keys > (has_few ? 4096 : 8192)) {
    return std::nullopt;
  }
  if (per_sm > 2) {
    return is_wide && keys > 2048 ? lone_band_setting(is_wide) : shared_band_setting(is_wide);
  }
  const bool is_shared =
      is_wide ? per_sm > 1 && keys <= (per_sm >= 1.75 ? 1024 : 512) : !has_few || keys <= 512;
  if (!is_shared) {
    return lone_band_setting(is_wide);
  }
  KernelConfig config = shared_band_setting(is_wide);
  if (per_sm > 1 && keys_grow) {
    config.at("order") = 2;
  }
  return config;
}

// Few query tiles do not hide each other's waits: more warps to a tile do, and products while
// threads make probabilities. By times on an H200, where lists of tiles are up to 28 % slower; but
// the SMs that long rows of fewer tiles leave over are of use to lists alone, for parts of rows,
// and what many keys of a few queries wait for is memory.
std::optional<KernelConfig> few_tiles_config(const Use& use, bool is_wide, double per_row) {
  constexpr std::int64_t kMostOfFewQueries = 1024;  // keys
  const std::int64_t keys =
      std::min(use.dim("kv_len"), use.scope.mask_band_end - use.scope.mask_band_first);
  const double per_sm = static_cast<double>(query_tiles(use)) /
                        static_cast<double>(use.scope.device.at("device.sm_count"));
  const double idle = 1 - 6.0 / 7 * per_sm;
  if (idle * per_row > (is_wide ? 25 : 15) ||
      (use.dim("q_len") <= cost::kFewQueryRows && keys > kMostOfFewQueries)) {
    return std::nullopt;
  }
  return has_even_rows(use, per_row)
             ? few_even_tiles_config(keys, per_sm, is_wide)
             : few_uneven_tiles_config(keys, per_sm, is_wide,
                                       use.scope.mask_band_first <= 1 - use.dim("q_len"));
}

// Of the kernel that walks along short windows, by times on an H200; nothing where there are too
// few query tiles to be worth the walk. Sums for a log-sum-exp take registers, which two warp
// groups have.
std::optional<KernelConfig> window_config(const Use& use) {
  constexpr std::int64_t kMostAtOnce = 192;  // keys
  constexpr std::int64_t kTilesPerSm = 16;
  const std::int64_t first = std::max(use.scope.mask_band_first, 1 - use.dim("q_len"));
  const std::int64_t end = std::min(use.scope.mask_band_end, use.dim("kv_len"));
  const std::int64_t span = mask::kTile - 1 + end - first;
  if (span > kMostAtOnce ||
      query_tiles(use) < kTilesPerSm * use.scope.device.at("device.sm_count")) {
    return std::nullopt;
  }
  return window_setting(std::max(mask::kTile, mask::ceil_div(span, 32) * 32),
                        use.ports.contains("lse") ? 2 : 3);
}

// By their names too: those of their parameters may well be a user's.
bool has_few_keys(const contract::TemplateContract& contract) {
  return contract.name == "attention_few_keys" && has_names(contract, few_keys_setting(0, 0));
}
bool has_held_keys(const contract::TemplateContract& contract) {
  return contract.name == "attention_held_sm90" && has_names(contract, held_setting(0));
}

// Of the kernel that has all keys of 16 queries at once, by times on an H200; nothing where larger
// query tiles, which read less, have blocks enough for all SMs too.
std::optional<KernelConfig> few_keys_config(const Use& use) {
  constexpr std::int64_t kRows = 16;
  constexpr std::int64_t kWarps = 4;
  constexpr std::int64_t kPieceKeys = 16;
  constexpr std::int64_t kMostPieces = 4;
  const std::int64_t keys =
      std::min(use.dim("kv_len"), kRows - 1 + use.scope.mask_band_end - use.scope.mask_band_first);
  const std::int64_t pieces = mask::ceil_div(keys, kWarps * kPieceKeys);
  const std::int64_t blocks =
      use.dim("batch") * use.dim("heads") * mask::ceil_div(use.dim("q_len"), kRows);
  const double blocks_per_sm =
      static_cast<double>(blocks) / static_cast<double>(use.scope.device.at("device.sm_count"));
  if (!has_few_keys(use.kernel->contract) || pieces > kMostPieces ||
      blocks_per_sm > (pieces == 1 ? 3.0 : 1.5)) {
    return std::nullopt;
  }
  return few_keys_setting(kWarps, pieces);
}

// Of the kernel that holds all keys of a head, by times on an H200; nothing where its blocks are
// fewer than SMs or more, or where some of them or their four warp groups have more to do.
std::optional<KernelConfig> held_config(const Use& use, double per_row) {
  constexpr std::int64_t kGroups = 4;
  const std::int64_t tiles = mask::ceil_div(use.dim("q_len"), mask::kTile);
  if (!has_held_keys(use.kernel->contract) || tiles < kGroups ||
      !has_open_side(use, use.scope.mask_band_first, use.scope.mask_band_end)) {
    return std::nullopt;
  }
  const bool is_even = has_even_rows(use, per_row);
  const double least = is_even || tiles <= kGroups ? 0.65 : 0.85;  // of the SMs
  const auto sm_count = static_cast<double>(use.scope.device.at("device.sm_count"));
  for (const std::int64_t pieces : {2, 1}) {
    const auto blocks = static_cast<double>(use.dim("batch") * use.dim("heads") * pieces);
    const bool is_fair = is_even ? tiles % (kGroups * pieces) == 0
                                 : mask::ceil_div(tiles, 2) % pieces == 0;  // pairs of tiles
    if (is_fair && blocks <= sm_count && blocks >= least * sm_count) {
      return held_setting(pieces);
    }
  }
  return std::nullopt;
}

// Whether the last of the waves in which blocks are worked on is so small that all take over a
// tenth longer than if it were full.
bool leaves_places(std::int64_t blocks, std::int64_t at_once) {
  return 10 * mask::ceil_div(blocks, at_once) * at_once > 11 * blocks;
}

// Of the kernel for bands, by times on an H200; nothing where a warp that is ahead with lists of
// tiles is worth its while. All keys of 64 queries at once is best where they fit registers: there
// is one chain of waits then, and one maximum.
std::optional<KernelConfig> band_tiles_config(const Use& use, const AttentionMask& mask) {
  constexpr std::int64_t kMostAtOnce = 192;  // keys
  constexpr std::int64_t kMostOfWide = 1024;
  const bool is_wide = has_wide_heads(use);
  const std::int64_t keys = use.dim("kv_len");
  const std::int64_t span =
      std::min(keys, mask::kTile - 1 + use.scope.mask_band_end - use.scope.mask_band_first);
  if (span <= kMostAtOnce) {
    const std::int64_t tile_k = std::max(mask::kTile, mask::ceil_div(span, 16) * 16);
    return band_setting(64, tile_k, tile_k, 1, is_wide ? 2 : tile_k > 128 ? 3 : 4);
  }
  const std::int64_t sm_count = use.scope.device.at("device.sm_count");
  const double per_row = tiles_per_row(use, mask);
  if (query_tiles(use) < 3 * sm_count) {
    return few_tiles_config(use, is_wide, per_row);
  }
  if (per_row >= kLongRow && per_row <= kVeryLongRow) {
    const bool is_large = query_tiles(use) >= 8 * sm_count;
    if (!is_wide && !is_large && has_even_rows(use, per_row) &&
        leaves_places(query_tiles(use), 3 * sm_count)) {
      return std::nullopt;
    }
    return is_wide    ? band_setting(128, 64, 64, 2, 1)
           : is_large ? band_setting(128, 128, 128, 2, 2)
                      : band_setting(64, 128, 128, 2, 3);
  }
  const bool is_short = is_wide ? keys <= kMostOfWide : per_row < kLongRow;
  return is_short ? std::optional(band_setting(64, 64, 64, 2, is_wide ? 2 : 4)) : std::nullopt;
}

// The same, with batch elements side by side where rows are uneven, blocks of an element few and
// not in pairs: one after the other, each would end with short rows alone.
std::optional<KernelConfig> band_config(const Use& use, const AttentionMask& mask) {
  std::optional<KernelConfig> config = band_tiles_config(use, mask);
  if (config && config->at("order") == 0 && use.dim("batch") > 1 &&
      !has_even_rows(use, tiles_per_row(use, mask)) &&
      use.dim("heads") * mask::ceil_div(use.dim("q_len"), config->at("tile_q")) <
          2 * use.scope.device.at("device.sm_count")) {
    config->at("order") = 1;
  }
  return config;
}

// Rows of more tiles leave nothing to pack, and lists of their groups take long to make.
constexpr double kMostPackedTiles = 24;

// Packed tiles are then plain ones with longer lists.
bool packs_nothing(const AttentionMask& mask) {
  return cost::packs_nothing(cost::tile_work(mask.arrays->packed_tiles(mask::kTile).lists),
                             cost::tile_work(mask.arrays->tiles(mask::kTile)));
}

// Whether it is a setting of the kernel that is allowed.
bool is_setting(const Use& use, const KernelConfig& config) {
  contract::ContractScope scope = use.scope;
  return has_parameters(use.kernel->contract, config) &&
         is_allowed(use.kernel->contract, scope, config);
}

// Whether queries and keys of a head are more than a tile of 64, and no more than one of 128.
bool has_tile_of_128(const Use& use) {
  return mask::ceil_div(use.dim("q_len"), mask::kTile) == 2 &&
         mask::ceil_div(use.dim("kv_len"), mask::kTile) == 2;
}

// Of block_wise_sm90, by times on an H200, where it is the fastest along a band: in large grids of
// wide heads, whose windows are long or that are a tile each. Scores that are modified take
// registers, which it has not.
std::optional<KernelConfig> list_setting_for_bands(const Use& use, const AttentionMask& mask) {
  const std::optional<mask::Band> band = mask.arrays ? mask.arrays->band() : std::nullopt;
  if (!band || !has_wide_heads(use) || mask.modifier.has_score() || packs(use.kernel->contract)) {
    return std::nullopt;
  }
  const double per_row = tiles_per_row(use, mask);
  const std::int64_t tiles_per_sm = query_tiles(use) / use.scope.device.at("device.sm_count");
  const bool is_long_window = !has_open_side(use, band->first, band->end) && per_row >= kLongRow &&
                              per_row <= kVeryLongRow && tiles_per_sm >= 32;
  if (!is_long_window && !(has_tile_of_128(use) && tiles_per_sm >= 12)) {
    return std::nullopt;
  }
  const KernelConfig config = {{"tile_q", 128},      {"tile_k", 128}, {"slots", 4},
                               {"blocks_per_sm", 1}, {"overlap", 1},  {"query_slots", 2}};
  return is_setting(use, config) ? std::optional(config) : std::nullopt;
}

// Of a kernel for bands, one that is allowed.
std::optional<KernelConfig> setting_for_bands(const Use& use, const AttentionMask& mask) {
  for (const auto& config : {few_keys_config(use), held_config(use, tiles_per_row(use, mask)),
                             window_config(use), band_config(use, mask)}) {
    if (config && is_setting(use, *config)) {
      return config;
    }
  }
  return std::nullopt;
}

// Of the kernel that walks along windows with global tokens, by times on an H200: their keys in
// whole steps, and as many slots as are allowed. Nothing where query tiles are too few to be worth
// the walk, or heads so short that blocks go from one to the next all the time.
std::optional<KernelConfig> global_local_config(const Use& use) {
  constexpr std::int64_t kStep = 32;
  constexpr std::int64_t kTilesPerSm = 16;
  constexpr std::int64_t kTilesPerHead = 16;
  const contract::ContractScope& scope = use.scope;
  if (query_tiles(use) < kTilesPerSm * scope.device.at("device.sm_count") ||
      mask::ceil_div(use.dim("q_len"), mask::kTile) < kTilesPerHead) {
    return std::nullopt;
  }
  const auto steps = [](std::int64_t keys, std::int64_t least) {
    return std::max(least, mask::ceil_div(keys, kStep) * kStep);
  };
  for (const std::int64_t slots : {10, 9, 8}) {
    const KernelConfig config =
        global_local_setting(steps(scope.mask_local_keys, mask::kTile),
                             steps(scope.mask_global_keys, kStep), scope.mask_global_tiles, slots);
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

// Of such a kernel.
std::optional<KernelConfig> setting_for_global_tokens(const Use& use) {
  return has_names(use.kernel->contract, resident_setting(0, 0, 0, 0)) ? resident_config(use)
                                                                       : global_local_config(use);
}

// Whether it is a kernel for certain masks that has the parameters of one whose setting is known
// here; a user's may have others.
bool has_rule(const contract::TemplateContract& contract) {
  return (takes_bands(contract) && (has_few_keys(contract) || has_held_keys(contract) ||
                                    has_names(contract, window_setting(0, 0)) ||
                                    has_names(contract, band_setting(0, 0, 1, 1, 0)))) ||
         (takes_global_tokens(contract) && (has_names(contract, global_local_setting(0, 0, 0, 0)) ||
                                            has_names(contract, resident_setting(0, 0, 0, 0))));
}

// Of a kernel that has a rule, its setting; nothing where it is not to be taken.
std::optional<KernelConfig> setting_by_rule(const Use& use, const AttentionMask& mask) {
  return takes_bands(use.kernel->contract) ? setting_for_bands(use, mask)
                                           : setting_for_global_tokens(use);
}

bool is_for_certain_masks(const Use& use) {
  return takes_bands(use.kernel->contract) || takes_global_tokens(use.kernel->contract);
}

// Where a kernel for certain masks has a setting, none of a lower rank is taken. Kernels that visit
// rows of keys may be better than others for bands, but not than those that have all keys at once.
int rank(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  return has_few_keys(contract) || has_held_keys(contract)                  ? 3
         : has_names(contract, window_setting(0, 0)) || reads_key_rows(use) ? 2
         : is_for_certain_masks(use)                                        ? 1
                                                                            : 0;
}

// Kernels for certain masks whose rule is known here are taken only where they have a setting.
bool is_out_of_place(const Use& use, const std::vector<Use>& uses, const AttentionMask& mask) {
  const auto has_list_setting = [&](const Use& one) {
    return list_setting_for_bands(one, mask).has_value();
  };
  if (has_list_setting(use)) {
    return false;
  }
  if (!reads_key_rows(use) && std::any_of(uses.begin(), uses.end(), has_list_setting)) {
    return true;
  }
  if (is_for_certain_masks(use) && !has_rule(use.kernel->contract)) {
    return false;
  }
  if (is_for_certain_masks(use) && !setting_by_rule(use, mask)) {
    return true;
  }
  const bool is_for_another = std::any_of(uses.begin(), uses.end(), [&](const Use& other) {
    return is_for_certain_masks(other) && rank(other) > rank(use) && setting_by_rule(other, mask);
  });
  return is_for_another ||
         (packs(use.kernel->contract) && tiles_per_row(use, mask) > kMostPackedTiles);
}

// What the expressions of a modifier read takes registers, which blocks that have all of an SM set
// apart for them and large tiles do not leave.
bool leaves_no_registers(const KernelConfig& config) {
  const auto blocks = config.find("blocks_per_sm");
  return blocks != config.end() &&
         (blocks->second > 2 || config.at("tile_q") > 64 || config.at("tile_k") > 64);
}

bool holds(std::span<const Option> options, const std::string& kernel, const KernelConfig& config) {
  return std::any_of(options.begin(), options.end(), [&](const Option& option) {
    return option.kernel == kernel && option.config == config;
  });
}

using Options = std::vector<std::pair<std::size_t, Option>>;  // with the use that each is of

// Of those that are as fast as the first one, the one to take: of products that which is for fewer
// problems; of attentions, if the first packs tiles in vain, the same tiles as they are, however
// fast, or else others.
Options::iterator preferred(Options& all, const std::vector<Use>& uses, const AttentionMask* mask) {
  const auto contract_of = [&](const auto& one) -> const contract::TemplateContract& {
    return uses[one.first].kernel->contract;
  };
  const double limit = all.front().second.time.total_us() * (1 + kTie);
  const auto is_as_fast = [&](const auto& one) { return one.second.time.total_us() <= limit; };
  auto best = all.begin();
  if (mask == nullptr) {
    for (auto other = all.begin(); other != all.end(); ++other) {
      if (is_as_fast(*other) &&
          contract_of(*other).constraints.size() > contract_of(*best).constraints.size()) {
        best = other;
      }
    }
    return best;
  }
  if (!packs(contract_of(*best))) {
    return best;
  }
  const auto is_plain = [&](const auto& one) {
    return !packs(contract_of(one)) && !reads_key_rows(uses[one.first]);
  };
  auto plain = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return is_plain(one) && one.second.config == best->second.config;
  });
  if (plain == all.end()) {
    plain = std::find_if(all.begin(), all.end(),
                         [&](const auto& one) { return is_plain(one) && is_as_fast(one); });
  }
  return plain != all.end() && packs_nothing(*mask) ? plain : best;
}

}  // namespace

std::string Option::text() const {
  std::string text = kernel;
  for (const auto& [name, value] : config) {
    text += fmt::format(", {} {}", name, value);
  }
  return text + ": " + time.text();
}

const Choice* Chooser::choose(const std::vector<Use>& uses, const Chain& chain, const graph::Ir& ir,
                              const AttentionMask* mask) {
  if (uses.empty()) {
    return nullptr;
  }
  const cost::Epilogue epilogue = epilogue_of(uses.front(), chain, ir);
  const auto key =
      std::pair(mask == nullptr ? nullptr : mask->arrays, problem_text(uses, epilogue, mask));
  if (const auto known = known_.find(key); known != known_.end()) {
    return &known->second;
  }
  Options all;
  const auto add_options = [&](bool also_out_of_place) {
    for (std::size_t use = 0; use < uses.size(); ++use) {
      if (!also_out_of_place && mask != nullptr && is_out_of_place(uses[use], uses, *mask)) {
        continue;
      }
      for (Option& option : options(uses[use], epilogue, mask)) {
        all.emplace_back(use, std::move(option));
      }
    }
  };
  add_options(false);
  if (all.empty()) {  // better a slow one than none
    add_options(true);
  }
  if (all.empty()) {
    return nullptr;
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return is_faster(a.second.time, b.second.time);
  });
  const auto best = preferred(all, uses, mask);
  std::rotate(all.begin(), best, best + 1);
  Choice choice{.use = all.front().first,
                .config = all.front().second.config,
                .long_tiles = {},
                .options = {}};
  if (mask != nullptr) {
    const Use& use = uses[choice.use];
    choice.long_tiles = long_tiles(use.kernel->contract, use.scope, choice.config, *mask);
  }
  for (auto& [use, option] : all) {  // operands that may change places give a use each
    if (!holds(choice.options, option.kernel, option.config)) {
      choice.options.push_back(std::move(option));
    }
  }
  if (lists_all_) {
    list_all(choice, uses, epilogue, mask);
  }
  return &known_.emplace(key, std::move(choice)).first->second;
}

Choice Chooser::forced(const Setting& setting, const Choice& choice, const std::vector<Use>& uses,
                       const Chain& chain, const graph::Ir& ir, const AttentionMask* mask,
                       std::string& refusal) {
  const auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& one) {
    return one.kernel->contract.name == setting.kernel;
  });
  if (use == uses.end()) {
    refusal = setting.kernel + " does not take the problem";
    return choice;
  }
  const contract::TemplateContract& contract = use->kernel->contract;
  contract::ContractScope scope = use->scope;
  if (!has_parameters(contract, setting.config) || !is_allowed(contract, scope, setting.config)) {
    refusal =
        fmt::format("{} does not allow {}", setting.kernel, nlohmann::json(setting.config).dump());
    return choice;
  }
  const cost::Problem problem =
      cost::make_problem(contract, scope, epilogue_of(*use, chain, ir), bytes_of_ports(*use));
  Choice result{.use = static_cast<std::size_t>(use - uses.begin()),
                .config = setting.config,
                .long_tiles = {},
                .options = {{.kernel = setting.kernel,
                             .config = setting.config,
                             .time = predict(problem, setting.config, mask)}}};
  if (mask != nullptr) {
    result.long_tiles = long_tiles(contract, use->scope, setting.config, *mask);
  }
  std::copy_if(choice.options.begin(), choice.options.end(), std::back_inserter(result.options),
               [&](const Option& option) {
                 return option.kernel != setting.kernel || option.config != setting.config;
               });
  return result;
}

void Chooser::list_all(Choice& choice, const std::vector<Use>& uses, const cost::Epilogue& epilogue,
                       const AttentionMask* mask) {
  std::vector<Option>& listed = choice.options;
  const std::size_t known = listed.size();  // those behind it are distinct, of one use
  for (const Use& use : uses) {
    const contract::TemplateContract& contract = use.kernel->contract;
    const cost::Problem problem =
        cost::make_problem(contract, use.scope, epilogue, bytes_of_ports(use));
    // The model says nothing of some parameters.
    const std::vector<KernelConfig> configs = nearest_first(contract, use.scope);
    const bool is_first = std::none_of(
        uses.data(), &use, [&](const Use& other) { return other.kernel == use.kernel; });
    for (const KernelConfig& config : configs) {
      const std::span<const Option> others(listed.data(), is_first ? known : listed.size());
      if (!holds(others, contract.name, config)) {
        listed.push_back(
            {.kernel = contract.name, .config = config, .time = predict(problem, config, mask)});
      }
    }
  }
  std::stable_sort(listed.begin() + 1, listed.end(),
                   [](const Option& a, const Option& b) { return is_faster(a.time, b.time); });
  if (listed.size() > kMostListed) {
    listed.erase(listed.begin() + kMostListed, listed.end());
  }
}

// The fastest few that are allowed.
std::vector<Option> Chooser::options(const Use& use, const cost::Epilogue& epilogue,
                                     const AttentionMask* mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  const cost::Problem problem =
      cost::make_problem(contract, use.scope, epilogue, bytes_of_ports(use));
  std::vector<KernelConfig> settings = model_.settings(problem);
  if (mask != nullptr && !mask->modifier.arguments().empty()) {
    std::erase_if(settings, leaves_no_registers);
  }
  if (mask != nullptr && has_rule(contract)) {
    const std::optional<KernelConfig> config = setting_by_rule(use, *mask);
    settings = config ? std::vector{*config} : std::vector<KernelConfig>();
  } else if (mask != nullptr) {
    if (auto config = list_setting_for_bands(use, *mask)) {
      settings = {*std::move(config)};
    }
  }
  std::vector<Option> options;
  for (KernelConfig& config : settings) {
    const cost::Prediction time = predict(problem, config, mask);
    options.push_back({.kernel = contract.name, .config = std::move(config), .time = time});
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const Option& a, const Option& b) { return is_faster(a.time, b.time); });
  contract::ContractScope scope = use.scope;
  std::vector<Option> allowed;
  for (Option& option : options) {
    if (allowed.size() < kShownSettings && is_allowed(contract, scope, option.config)) {
      allowed.push_back(std::move(option));
    }
  }
  if (allowed.empty()) {
    if (const auto config = plain_config(contract, scope)) {
      allowed.push_back(
          {.kernel = contract.name, .config = *config, .time = predict(problem, *config, mask)});
    }
  }
  return allowed;
}

cost::Prediction Chooser::predict(const cost::Problem& problem, const KernelConfig& config,
                                  const AttentionMask* mask) {
  if (mask == nullptr) {
    return model_.predict(problem, config);
  }
  cost::AttentionWork work{.features = &mask->features(),
                           .tiles = nullptr,
                           .long_tiles = {},
                           .windows = {},
                           .has_score = mask->modifier.has_score(),
                           .reads_captures = mask->modifier.reads_captures()};
  cost::TileWork mean;
  if (problem.contract->takes_mask_array("window_col")) {
    work.windows = mask->arrays->window_counts();
  } else if (!problem.contract->takes_mask_array("key_col")) {
    if (mask->run_time) {
      mean = cost::mean_tile_work(mask->features(), tile_rows(config));
    }
    work.tiles = mask->run_time ? &mean : &tile_work(*problem.contract, config, *mask);
    work.long_tiles = long_tiles(*problem.contract, *problem.scope, config, *mask);
  }
  return model_.predict(problem, config, &work);
}

cost::LongTiles Chooser::long_tiles(const contract::TemplateContract& contract,
                                    const contract::ContractScope& scope,
                                    const KernelConfig& config, const AttentionMask& mask) {
  if (mask.run_time || !cost::takes_long_tiles(contract)) {
    return {};
  }
  return cost::long_tiles({.contract = &contract, .scope = &scope, .work = {}, .epilogue = {}},
                          config, tile_work(contract, config, mask));
}

const cost::TileWork& Chooser::tile_work(const contract::TemplateContract& contract,
                                         const KernelConfig& config, const AttentionMask& mask) {
  const std::int64_t tile_q = tile_rows(config);
  const bool is_packed = packs(contract);
  const auto key = std::tuple(mask.arrays, tile_q, is_packed);
  const auto found = tile_work_.find(key);
  if (found != tile_work_.end()) {
    return found->second;
  }
  return tile_work_
      .emplace(key, is_packed ? cost::tile_work(mask.arrays->packed_tiles(tile_q).lists)
                              : cost::tile_work(mask.arrays->tiles(tile_q)))
      .first->second;
}

}  // namespace stof::fusion
