#include "cost/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "cost/makespan.hpp"
#include "cost/occupancy.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;

constexpr double kKeys = 64;  // of a key tile

std::int64_t parameter(const KernelConfig& config, const char* name, std::int64_t otherwise) {
  const auto found = config.find(name);
  return found == config.end() ? otherwise : found->second;
}

std::int64_t blocks_at_once(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  contract::ContractScope scope = *problem.scope;
  scope.config = config;
  const contract::ResourceEstimate block = contract::evaluate_resources(*problem.contract, scope);
  return blocks_per_sm(
      sm.device,
      {.threads = block.threads, .shared_bytes = block.shared_bytes, .registers = block.registers});
}

// The (batch, head) pairs that share a plane of the mask.
std::int64_t replicas(const Problem& problem) {
  const contract::ContractScope& scope = *problem.scope;
  return scope.dims.at("batch") * scope.dims.at("heads") / (scope.mask_batch * scope.mask_heads);
}

// Of queries, keys and values, which have one dtype.
double element_bytes(const Problem& problem) {
  return problem.scope->dtypes.empty() ? 2 : size_bytes(problem.scope->dtypes.begin()->second);
}

double mask_ns(const TiledAttention& c, mask::MaskClass mask_class) {
  switch (mask_class) {
    case mask::MaskClass::None:
      return 0;
    case mask::MaskClass::IntervalRows:
      return c.interval_ns;
    case mask::MaskClass::InlinePredicate:
      return c.predicate_ns;
    case mask::MaskClass::Bitmap:
      break;
  }
  return c.bitmap_ns;
}

const TiledAttention& coefficients_of(const Sm& sm, const std::string& name) {
  const auto& all = sm.coefficients.tiled_attention;
  const auto found = all.find(name);
  return found == all.end() ? all.at("") : found->second;
}

Prediction tiled_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                           const AttentionWork& work) {
  STOF_CHECK(work.tiles != nullptr) << problem.contract->name << " needs tiles";
  const TiledAttention& c = coefficients_of(sm, problem.contract->name);
  const auto tile_q = static_cast<double>(work.tiles->tile_q);
  const double head_dims =
      static_cast<double>(problem.scope->dims.at("head_dim") + problem.scope->dims.at("value_dim"));
  const std::int64_t warps = parameter(config, "warps", 4);
  const bool is_tall = work.tiles->tile_q >= 32 * warps;
  const double share = is_tall ? c.tall_tensor_share : c.tensor_share;
  const double flops = 2 * tile_q * kKeys * head_dims;
  const double pairs = tile_q * kKeys;
  const double tensor =
      std::max(c.uses_wgmma ? sm.tensor_us(flops, share) : sm.mma_us(flops, share),
               sm.us(pairs * c.softmax_ns));
  const double core = work.has_score ? sm.us(pairs * c.score_ns) : 0;
  const double masked =
      sm.us(std::min(tile_q, kKeys) * kKeys * mask_ns(c, work.features->mask_class));
  const double block = sm.us(c.block_ns * tile_q / kKeys);
  const auto key_groups = static_cast<double>(parameter(config, "key_groups", 1));
  const double alone = sm.us(c.alone_ns + (key_groups > 1 ? c.exchange_ns : 0));

  std::vector<WorkGroup> shared;  // what tiles take of an SM
  std::vector<WorkGroup> chains;  // how long they take
  Prediction sum;                 // of all tiles
  double all_entries = 0;
  double total = 0;
  const std::int64_t copies = replicas(problem);
  for (const TileGroup& group : work.tiles->groups) {
    const auto entries = static_cast<double>(group.entries);
    const double with_mask = static_cast<double>(group.part) * masked;
    const double one = block + entries * (tensor + core) + with_mask;
    const std::int64_t count = group.count * copies;
    shared.push_back({one, count});
    chains.push_back({alone + c.alone_factor * (one - block) / key_groups, count});
    sum.blocks_us += static_cast<double>(count) * block;
    sum.tensor_us += static_cast<double>(count) * entries * tensor;
    sum.core_us += static_cast<double>(count) * (entries * core + with_mask);
    all_entries += static_cast<double>(count) * entries;
    total += static_cast<double>(count) * one;
  }
  const double span = makespan(shared, sm.device.sm_count);
  const double of_total = span / total;
  const double key_bytes = head_dims * element_bytes(problem);
  return {.blocks_us = sum.blocks_us * of_total,
          .core_us = sum.core_us * of_total,
          .tensor_us = sum.tensor_us * of_total,
          .l2_us = sm.l2_us(all_entries * of_total * kKeys * key_bytes, 1),
          .wait_us = makespan(chains, sm.device.sm_count * blocks_at_once(sm, problem, config))};
}

Prediction gathered_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                              const AttentionWork& work) {
  const GatheredAttention& c = sm.coefficients.gathered_attention;
  const mask::MaskFeatures& features = *work.features;
  constexpr double kBatch = 32;  // keys
  const double rows =
      static_cast<double>(problem.scope->dims.at("batch") * problem.scope->dims.at("heads") *
                          problem.scope->dims.at("q_len"));
  const double head_dims =
      static_cast<double>(problem.scope->dims.at("head_dim") + problem.scope->dims.at("value_dim"));
  // Half a batch is left over on average, but for rows that all see less than one.
  const double batches = std::max(1.0, features.mean_keys / kBatch + 0.5);
  const auto warps_per_row = static_cast<double>(parameter(config, "warps_per_row", 1));
  const double per_sm = std::ceil(rows / sm.count);
  Prediction time;
  time.blocks_us = sm.us(per_sm * c.row_ns);
  time.core_us = sm.us(per_sm * batches * c.batch_ns);
  time.l2_us =
      sm.l2_us(per_sm * features.mean_keys * head_dims * element_bytes(problem), c.l2_share);
  time.wait_us = sm.us(c.alone_ns + c.alone_batch_ns * static_cast<double>(features.max_keys) /
                                        (kBatch * warps_per_row));
  return time;
}

// By template: what was the best for some mask, the default first.
const std::map<std::string, std::vector<KernelConfig>, std::less<>>& settings_by_template() {
  const auto tiles = [](std::int64_t tile_q, std::int64_t tile_k, std::int64_t key_groups) {
    return KernelConfig{{"tile_q", tile_q},
                        {"tile_k", tile_k},
                        {"warps", 4},
                        {"key_groups", key_groups},
                        {"stages", 2}};
  };
  static const std::map<std::string, std::vector<KernelConfig>, std::less<>> settings = {
      {"attention_block_wise_sm80",
       {tiles(64, 64, 1), tiles(64, 64, 2), tiles(128, 64, 1), tiles(128, 32, 1)}},
  };
  return settings;
}

}  // namespace

Prediction predict_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                             const AttentionWork& work) {
  return problem.contract->takes_mask_array("key_col")
             ? gathered_attention(sm, problem, config, work)
             : tiled_attention(sm, problem, config, work);
}

std::vector<KernelConfig> attention_settings(const Problem& problem) {
  const auto found = settings_by_template().find(problem.contract->name);
  return found == settings_by_template().end() ? std::vector<KernelConfig>() : found->second;
}

}  // namespace stof::cost
