#include "cost/chained_products.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "cost/occupancy.hpp"
#include "mask/bits.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;
using mask::ceil_div;

constexpr std::int64_t kChainStep = 64;         // of k
constexpr double kElementsPerChainUnit = 1024;  // of a tile

bool is_gated_chain(const Problem& problem) {
  return problem.contract->name.starts_with("gated_");
}

// Tiles of one of the two products.
struct ChainTiles {
  std::int64_t blocks;
  std::int64_t steps;    // of a block
  std::int64_t columns;  // of weights

  double bytes(std::int64_t rows) const {
    return static_cast<double>(blocks * steps * (rows + columns) * 2 * kChainStep);
  }
  double flops(std::int64_t tile_m) const {
    return static_cast<double>(blocks * steps * tile_m * columns * 2 * kChainStep);
  }
  // Units of a warp of a block, whose warps share the steps.
  double units(std::int64_t tile_m, std::int64_t warps) const {
    return static_cast<double>(ceil_div(steps, warps) * tile_m * columns) / kElementsPerChainUnit;
  }
};

constexpr std::array<std::array<std::int64_t, 6>, 5> kChainSettings = {{
    {16, 32, 32, 4, 4, 4},
    {16, 32, 32, 4, 4, 2},
    {16, 32, 16, 4, 4, 1},
    {32, 32, 32, 3, 4, 4},
    {64, 32, 32, 2, 4, 4},
}};
constexpr std::array<std::array<std::int64_t, 6>, 3> kGatedChainSettings = {{
    {16, 16, 32, 4, 4, 2},
    {16, 16, 32, 4, 4, 1},
    {32, 16, 32, 3, 4, 2},
}};

}  // namespace

bool is_chain(std::string_view name) {
  return name == "chain_sm80" || name == "chain_sm90" || name == "gated_chain_sm80" ||
         name == "gated_chain_sm90";
}

Prediction predict_chain(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const ChainedProducts& c = sm.coefficients.chained_products;
  const auto& dims = problem.scope->dims;
  const std::int64_t inner = dims.at("inner");
  const std::int64_t tile_m = config.at("tile_m");
  const std::int64_t warps = config.at("warps");
  const auto split = config.contains("split") ? config.at("split") : 1;
  const std::int64_t weights = is_gated_chain(problem) ? 2 : 1;
  const std::int64_t tiles_m = ceil_div(dims.at("m"), tile_m);
  const ChainTiles first = {.blocks = tiles_m * ceil_div(inner, config.at("tile_inner")),
                            .steps = ceil_div(dims.at("k"), kChainStep),
                            .columns = weights * config.at("tile_inner")};
  const ChainTiles second = {
      .blocks = tiles_m * ceil_div(dims.at("n"), config.at("tile_n")) * split,
      .steps = ceil_div(ceil_div(inner, kChainStep), split),
      .columns = config.at("tile_n")};
  const std::int64_t columns = std::max(first.columns, second.columns);
  const BlockResources block = {
      .threads = 32 * warps,
      .shared_bytes = warps * config.at("stages") * (tile_m + columns) * 2 * kChainStep,
      .registers =
          std::min<std::int64_t>(255, 80 + tile_m * columns / 32 + (tile_m + columns) / 2)};
  const std::int64_t lanes = sm.device.sm_count * blocks_per_sm(sm.device, block);
  // The second product waits for the first even where all blocks are there at once.
  const auto rounds =
      static_cast<double>(std::max<std::int64_t>(2, ceil_div(first.blocks + second.blocks, lanes)));
  const std::int64_t rows = std::min(tile_m, dims.at("m"));  // that are read
  const auto area = static_cast<double>(tiles_m * tile_m) / sm.count;
  const auto inner_values = static_cast<double>(inner) * area;
  Prediction time;
  time.blocks_us = sm.us(rounds * c.block_ns);
  time.core_us = sm.us(inner_values * sm.coefficients.transcendental_ns) +
                 sm.us(static_cast<double>(dims.at("n")) * area *
                       sm.coefficients.transcendental_ns * problem.epilogue.transcendentals) +
                 sm.dram_us(problem.epilogue.bytes, sm.coefficients.hook_dram_share);
  time.tensor_us = sm.mma_us((first.flops(tile_m) + second.flops(tile_m)) / sm.count, 1);
  time.l2_us = sm.l2_us((first.bytes(rows) + second.bytes(rows)) / sm.count, c.l2_share);
  time.wait_us = sm.us(rounds * c.round_ns + static_cast<double>(split - 1) * c.exchange_ns +
                       (first.units(tile_m, warps) + second.units(tile_m, warps)) * c.unit_ns) +
                 c.exposed_share * time.l2_us + time.core_us;
  return time;
}

std::vector<KernelConfig> chain_settings(const Problem& problem) {
  std::vector<KernelConfig> settings;
  const bool has_split =
      std::any_of(problem.contract->params.begin(), problem.contract->params.end(),
                  [](const auto& param) { return param.name == "split"; });
  const auto add = [&](const std::array<std::int64_t, 6>& s) {
    KernelConfig setting = {{"tile_m", s[0]},
                            {"tile_inner", s[1]},
                            {"tile_n", s[2]},
                            {"stages", s[3]},
                            {"warps", s[4]}};
    if (has_split) {
      setting.emplace("split", s[5]);
    }
    if (has_split || s[5] == 1 || s[0] > 16) {
      settings.push_back(setting);
    }
  };
  if (is_gated_chain(problem)) {
    std::for_each(kGatedChainSettings.begin(), kGatedChainSettings.end(), add);
  } else {
    std::for_each(kChainSettings.begin(), kChainSettings.end(), add);
  }
  return settings;
}

}  // namespace stof::cost
