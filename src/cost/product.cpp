#include "cost/product.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "cost/chained_products.hpp"
#include "cost/occupancy.hpp"
#include "mask/bits.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;
using mask::ceil_div;

constexpr std::int64_t kStep = 64;       // of k
constexpr double kFlopsPerStep = 128;    // of one element of a tile
constexpr double kBytesPerStep = 128;    // of one row of a tile
constexpr std::int64_t kSplitLanes = 4;  // SMs that clusters of one more block leave idle

struct Product {
  std::int64_t batch, m, n, k;

  // A gated product has no batch.
  explicit Product(const Problem& problem)
      : batch(problem.scope->dims.contains("batch") ? problem.scope->dims.at("batch") : 1),
        m(problem.scope->dims.at("m")),
        n(problem.scope->dims.at("n")),
        k(problem.scope->dims.at("k")) {}

  std::int64_t blocks(std::int64_t tile_m, std::int64_t tile_n) const {
    return batch * ceil_div(m, tile_m) * ceil_div(n, tile_n);
  }
};

// Whether it adds up the moments of the rows of x on the way.
bool takes_moments(std::string_view name) {
  return name == "gemm_moments";
}

// Whether its pattern ends with heads that are turned.
bool turns_heads(std::string_view name) {
  return name == "gemm_rotary" || name == "few_rows_rotary";
}

bool is_for_few_rows(std::string_view name) {
  return name == "gemm_few_rows" || name == "few_rows_rotary";
}

// What the blocks of one SM make in the end.
double epilogue_us(const Sm& sm, const Problem& problem, double elements) {
  return sm.us(elements * sm.coefficients.transcendental_ns * problem.epilogue.transcendentals) +
         sm.dram_us(problem.epilogue.bytes, sm.coefficients.hook_dram_share);
}

// The activation of a gated product.
double gate_us(const Sm& sm, std::int64_t weights, double elements) {
  return weights == 2 ? sm.us(elements * sm.coefficients.transcendental_ns) : 0;
}

Prediction wgmma_product(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const WgmmaProduct& c = sm.coefficients.wgmma_product;
  const Product product(problem);
  const std::int64_t tile_m = config.at("tile_m");
  const std::int64_t tile_n = config.at("tile_n");
  const std::int64_t stages = config.at("stages");
  const std::int64_t split = config.at("split_k");
  const BlockResources block = {
      .threads = 2 * tile_m,
      .shared_bytes = std::max(stages * (tile_m + tile_n) * 128, tile_m * (tile_n + 8) * 4),
      .registers = tile_n / 2 + 64};
  const std::int64_t at_once = blocks_per_sm(sm.device, block);
  const std::int64_t lanes =
      std::max<std::int64_t>(1, sm.device.sm_count - kSplitLanes * (split - 1));
  const std::int64_t queue = ceil_div(product.blocks(tile_m, tile_n) * split, lanes);
  const auto rounds = static_cast<double>(ceil_div(queue, at_once));
  const auto steps = static_cast<double>(ceil_div(ceil_div(product.k, kStep), split));
  const auto area = static_cast<double>(queue * tile_m * tile_n);
  Prediction time;
  time.blocks_us = sm.us(rounds * c.block_ns + area * c.element_ns);
  if (split > 1) {
    time.blocks_us +=
        sm.us(c.exchange_ns + static_cast<double>(tile_m * tile_n) * c.exchange_element_ns);
  }
  time.core_us = epilogue_us(sm, problem, area);
  time.tensor_us = sm.tensor_us(steps * area * kFlopsPerStep, c.tensor_share);
  time.l2_us =
      sm.l2_us(steps * static_cast<double>(queue * (tile_m + tile_n)) * kBytesPerStep, c.l2_share);
  const auto new_columns = static_cast<double>(product.m > tile_m ? 0 : queue * tile_n);
  time.wait_us = time.blocks_us + time.core_us +
                 sm.us(steps * std::max(rounds * c.copy_ns / static_cast<double>(stages - 1),
                                        new_columns * c.column_ns));
  return time;
}

// Blocks that stay and take tile after tile, of one weight or of the two of a gated product. Those
// of a norm stay in clusters.
Prediction ring_product(const Sm& sm, const Problem& problem, const KernelConfig& config,
                        std::int64_t weights, bool is_normed) {
  const RingProduct& c = sm.coefficients.ring_product;
  const Product product(problem);
  const std::int64_t tile_m = config.at("tile_m");
  const std::int64_t tile_n = config.at("tile_n");
  const std::int64_t cluster = is_normed ? ceil_div(product.n, tile_n) : 1;
  const std::int64_t idle = is_normed ? 12 : 0;  // SMs, as their grid says
  const std::int64_t clusters = std::max<std::int64_t>(1, (sm.device.sm_count - idle) / cluster);
  const std::int64_t queue = ceil_div(product.blocks(tile_m, tile_n), clusters * cluster);
  const auto tiles = static_cast<double>(queue);
  const auto steps = static_cast<double>(ceil_div(product.k, kStep));
  const auto area = static_cast<double>(queue * tile_m * tile_n);
  Prediction time;
  time.blocks_us = sm.us(c.block_ns + tiles * c.tile_ns + area * c.element_ns +
                         (is_normed ? tiles * c.exchange_ns + area * c.norm_element_ns : 0));
  time.core_us = epilogue_us(sm, problem, area) + gate_us(sm, weights, area);
  if (takes_moments(problem.contract->name)) {
    time.core_us += sm.us(tiles * steps * static_cast<double>(tile_m) * c.moments_ns);
  }
  if (turns_heads(problem.contract->name)) {
    time.core_us += sm.us(area * c.turn_ns);
  }
  time.tensor_us =
      sm.tensor_us(steps * area * static_cast<double>(weights) * kFlopsPerStep, c.tensor_share);
  const auto rows = static_cast<double>(queue * (tile_m + weights * tile_n));
  time.l2_us = sm.l2_us(steps * rows * kBytesPerStep, c.l2_share);
  const auto void_rows = static_cast<double>(std::max<std::int64_t>(0, tile_m - product.m));
  const auto new_columns = static_cast<double>(product.m > tile_m ? 0 : weights * tile_n);
  const double step_ns =
      std::max(c.copy_ns / static_cast<double>(config.at("stages")), new_columns * c.column_ns);
  time.wait_us =
      time.blocks_us + time.core_us + sm.us(steps * tiles * (step_ns + void_rows * c.void_row_ns));
  return time;
}

// Each SM works on as many blocks at once as there is room for: where the next kernel's first
// blocks come before the last of this one, some SMs have all of them, others less.
Prediction few_rows_product(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const FewRowsProduct& c = sm.coefficients.few_rows_product;
  const Product product(problem);
  const std::int64_t tile_m = config.at("tile_m");
  const std::int64_t tile_n = config.at("tile_n");
  const std::int64_t stages = config.at("stages");
  const std::int64_t split = config.at("split_k");
  const BlockResources block = {.threads = 2 * tile_n + 32,
                                .shared_bytes = stages * ((tile_m + tile_n) * 128 + 16) + 16,
                                .registers = tile_m / 2 + 64};
  const std::int64_t at_once = blocks_per_sm(sm.device, block);
  const std::int64_t lanes =
      std::max<std::int64_t>(1, sm.device.sm_count - kSplitLanes * (split - 1));
  const std::int64_t blocks = product.batch * ceil_div(product.n, tile_n) * split;
  const std::int64_t rounds = ceil_div(blocks, lanes * at_once);
  const auto queue = static_cast<double>(rounds * at_once);
  const auto steps = static_cast<double>(ceil_div(ceil_div(product.k, kStep), split));
  const double area = queue * static_cast<double>(tile_m * tile_n);
  Prediction time;
  time.blocks_us = sm.us(static_cast<double>(rounds) * c.block_ns + area * c.element_ns +
                         (split > 1 ? c.exchange_ns : 0));
  time.core_us = epilogue_us(sm, problem, area);
  if (turns_heads(problem.contract->name)) {
    time.core_us += sm.us(area * c.turn_ns);
  }
  time.tensor_us = sm.tensor_us(steps * area * kFlopsPerStep, c.tensor_share);
  const auto rows = static_cast<double>(std::min(tile_m, product.m) + tile_n);
  time.l2_us = sm.l2_us(steps * queue * rows * kBytesPerStep, c.l2_share);
  time.wait_us =
      time.blocks_us + time.core_us +
      sm.us(steps * std::max(static_cast<double>(rounds) * c.copy_ns / static_cast<double>(stages),
                             queue * static_cast<double>(tile_n) * c.column_ns));
  return time;
}

Prediction mma_product(const Sm& sm, const Problem& problem, const KernelConfig& config,
                       std::int64_t weights) {
  const MmaProduct& c = sm.coefficients.mma_product;
  const Product product(problem);
  const std::int64_t tile_m = config.at("tile_m");
  const std::int64_t tile_n = weights * config.at("tile_n");
  const std::int64_t tile_k = config.at("tile_k");
  const std::int64_t stages = config.at("stages");
  const std::int64_t warps_m = config.at("warps_m");
  const std::int64_t warps_n = config.at("warps_n");
  const std::int64_t split = config.contains("split_k") ? config.at("split_k") : 1;
  const std::int64_t threads = 32 * warps_m * warps_n;
  const BlockResources block = {
      .threads = threads,
      .shared_bytes = stages * (tile_m + tile_n) * tile_k * 2,
      .registers = std::min<std::int64_t>(255, tile_m * tile_n / threads + 110)};
  const std::int64_t at_once = blocks_per_sm(sm.device, block);
  const std::int64_t queue =
      ceil_div(product.blocks(tile_m, config.at("tile_n")) * split, sm.device.sm_count);
  const auto steps = static_cast<double>(ceil_div(ceil_div(product.k, kStep), split));
  const auto area = static_cast<double>(queue * tile_m * tile_n);
  // Blocks that share an SM hide each other's copies, the last of them perhaps fewer.
  const double copy_ns =
      std::max(c.step_ns, c.copy_ns * kStep / static_cast<double>((stages - 1) * tile_k));
  const auto rounds = static_cast<double>(ceil_div(queue, at_once));
  Prediction time;
  time.blocks_us =
      sm.us(rounds * c.block_ns + area * c.element_ns + (split == 1 ? 0 : c.exchange_ns));
  const double elements = area / static_cast<double>(weights);
  time.core_us = epilogue_us(sm, problem, elements) + gate_us(sm, weights, elements);
  time.tensor_us = sm.mma_us(steps * area * kFlopsPerStep, c.tensor_share);
  const auto shared_rows =
      static_cast<double>(queue * (tile_m * (warps_n + 1) + tile_n * (warps_m + 1)));
  time.l2_us = sm.us(steps * shared_rows * c.shared_row_ns);
  time.wait_us = time.blocks_us + time.core_us + sm.us(steps * rounds * copy_ns);
  return time;
}

Prediction vector_product(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const VectorProduct& c = sm.coefficients.vector_product;
  const auto split = config.find("split_k");
  const bool is_split = split != config.end() && split->second > 1;
  const bool by_rows = problem.contract->name == "vector_rows";
  Prediction time;
  time.blocks_us =
      sm.us((by_rows ? c.rows_block_ns : c.columns_block_ns) + (is_split ? c.exchange_ns : 0));
  time.core_us = epilogue_us(sm, problem, 0);
  // At most 4 rows: all that counts is how fast the weights can be read.
  time.wait_us = time.blocks_us + time.core_us + sm.dram_us(problem.work.bytes, c.dram_share);
  return time;
}

Prediction simple_product(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const SimpleProduct& c = sm.coefficients.simple_product;
  constexpr std::int64_t kSimpleStep = 32;
  constexpr std::int64_t kBlocksAtOnce = 2;
  const Product product(problem);
  const std::int64_t tile = config.at("tile");
  const std::int64_t queue = ceil_div(product.blocks(tile, tile), sm.device.sm_count);
  const auto rounds = static_cast<double>(ceil_div(queue, kBlocksAtOnce));
  const auto area = static_cast<double>(queue * tile * tile);
  Prediction time;
  time.blocks_us = sm.us(rounds * c.block_ns);
  time.core_us = epilogue_us(sm, problem, area) +
                 sm.fma_us(2 * area * static_cast<double>(product.k), c.fma_share);
  time.wait_us = time.blocks_us +
                 sm.us(rounds * c.step_ns * static_cast<double>(ceil_div(product.k, kSimpleStep)));
  return time;
}

// A template of the same name that replaces the shipped one may have other parameters.
bool has(const KernelConfig& config, std::initializer_list<const char*> parameters) {
  return std::all_of(parameters.begin(), parameters.end(),
                     [&](const char* parameter) { return config.contains(parameter); });
}

KernelConfig wgmma_setting(const std::array<std::int64_t, 4>& s) {
  return {{"tile_m", s[0]}, {"tile_n", s[1]}, {"stages", s[2]}, {"group_m", 8}, {"split_k", s[3]}};
}

constexpr std::array<std::array<std::int64_t, 4>, 31> kWgmmaSettings = {{
    {64, 32, 8, 1},   {64, 32, 8, 2},   {64, 32, 6, 2},   {64, 32, 8, 4},   {64, 32, 6, 4},
    {64, 64, 8, 1},   {64, 64, 8, 2},   {64, 64, 6, 2},   {64, 64, 8, 4},   {64, 64, 6, 4},
    {64, 64, 8, 8},   {64, 96, 8, 1},   {64, 96, 8, 2},   {64, 96, 8, 4},   {64, 128, 8, 1},
    {64, 128, 6, 2},  {64, 128, 6, 4},  {128, 64, 8, 1},  {128, 64, 8, 2},  {128, 64, 8, 4},
    {128, 96, 6, 1},  {128, 96, 6, 2},  {128, 128, 6, 1}, {128, 128, 6, 2}, {128, 128, 6, 4},
    {128, 192, 5, 1}, {128, 192, 5, 2}, {192, 192, 4, 1}, {256, 128, 4, 1}, {256, 128, 4, 2},
    {128, 256, 4, 1},
}};

KernelConfig mma_setting(const std::array<std::int64_t, 7>& s) {
  return {{"tile_m", s[0]},  {"tile_n", s[1]},  {"tile_k", s[2]}, {"stages", s[3]},
          {"warps_m", s[4]}, {"warps_n", s[5]}, {"group_m", 8},   {"split_k", s[6]}};
}

constexpr std::array<std::array<std::int64_t, 7>, 7> kMmaSettings = {{
    {32, 32, 64, 4, 2, 2, 1},
    {32, 64, 64, 4, 2, 2, 1},
    {64, 64, 64, 4, 2, 2, 1},
    {64, 64, 64, 4, 2, 2, 4},
    {64, 128, 64, 3, 2, 2, 1},
    {128, 128, 32, 4, 2, 2, 1},
    {128, 256, 64, 3, 2, 4, 1},
}};

KernelConfig ring_setting(const std::array<std::int64_t, 3>& s) {
  return {{"tile_m", s[0]}, {"tile_n", s[1]}, {"stages", s[2]}, {"group_m", 8}};
}

constexpr std::array<std::array<std::int64_t, 3>, 6> kRingSettings = {{
    {128, 64, 8},
    {128, 128, 6},
    {128, 192, 4},
    {128, 256, 4},
    {192, 128, 4},
    {192, 192, 4},
}};
// Of gemm_moments and gemm_rotary alone, ahead of those of gemm_tma.
constexpr std::array<std::array<std::int64_t, 3>, 2> kLowRingSettings = {{
    {64, 64, 8},
    {64, 128, 8},
}};

// Columns and stages: with one to three blocks of an SM for 16 rows, fewer for more of them.
constexpr std::array<std::array<std::int64_t, 2>, 7> kFewRowsSettings = {{
    {64, 6},
    {64, 8},
    {64, 12},
    {64, 3},
    {128, 4},
    {128, 6},
    {128, 10},
}};
constexpr std::array<std::array<std::int64_t, 3>, 3> kGatedRingSettings = {{
    {128, 64, 6},
    {128, 128, 4},
    {192, 64, 4},
}};

// As those of a product with twice the columns, without split k.
constexpr std::array<std::array<std::int64_t, 6>, 4> kGatedMmaSettings = {{
    {32, 32, 64, 4, 1, 4},
    {64, 64, 64, 3, 2, 2},
    {128, 64, 32, 4, 2, 2},
    {128, 128, 64, 3, 2, 4},
}};

constexpr std::array<std::array<std::int64_t, 3>, 8> kNormSettings = {{
    {64, 64, 6},
    {64, 128, 6},
    {64, 192, 5},
    {64, 256, 4},
    {128, 64, 6},
    {128, 128, 5},
    {128, 192, 4},
    {128, 256, 3},
}};

// The least height of a tile that has all rows.
std::vector<KernelConfig> few_rows_settings(std::int64_t rows) {
  std::int64_t tile_m = 16;
  while (tile_m < rows && tile_m < 128) {
    tile_m *= 2;
  }
  std::vector<KernelConfig> settings;
  for (const auto& [tile_n, stages] : kFewRowsSettings) {
    for (const std::int64_t split : {1, 2, 4, 8}) {
      settings.push_back(
          {{"tile_m", tile_m}, {"tile_n", tile_n}, {"stages", stages}, {"split_k", split}});
    }
  }
  return settings;
}

bool is_normed(std::string_view name) {
  return name == "gemm_norm" || name == "gemm_sum_norm";
}

bool is_gated(std::string_view name) {
  return name == "gated_sm90" || name == "gated_sm80";
}

// A warp reads 64 chunks of 8 weights before it pays to let another one help.
KernelConfig rows_setting(const Product& product) {
  std::int64_t parts = 1;
  while (parts < 8 && product.k / 8 > 64 * parts) {
    parts *= 2;
  }
  const bool is_tall = product.m > 2;
  return {{"columns", parts == 8 || is_tall ? 2 : 1},
          {"parts", is_tall ? std::min<std::int64_t>(parts, 4) : parts}};
}

// Four blocks an SM, as long as there is enough of k.
KernelConfig columns_setting(const Product& product, std::int64_t sm_count) {
  std::int64_t split = 1;
  while (split < 16 && ceil_div(product.n, 64) * split * 2 <= 4 * sm_count &&
         64 * split <= product.k / 8) {
    split *= 2;
  }
  return {{"chunks", 8}, {"split_k", split}};
}

}  // namespace

std::optional<Prediction> predict_product(const Sm& sm, const Problem& problem,
                                          const KernelConfig& config) {
  const std::string_view name = problem.contract->name;
  if (name == "gemm_sm90" && has(config, {"tile_m", "tile_n", "stages", "split_k"})) {
    return wgmma_product(sm, problem, config);
  }
  const std::int64_t weights = is_gated(name) ? 2 : 1;
  if (is_for_few_rows(name) && has(config, {"tile_m", "tile_n", "stages", "split_k"})) {
    return few_rows_product(sm, problem, config);
  }
  if ((name == "gemm_tma" || name == "gemm_rotary" || name == "gated_sm90" ||
       takes_moments(name)) &&
      has(config, {"tile_m", "tile_n", "stages"})) {
    return ring_product(sm, problem, config, weights, false);
  }
  if (is_normed(name) && has(config, {"tile_m", "tile_n", "stages"})) {
    return ring_product(sm, problem, config, 1, true);
  }
  if ((name == "gemm_sm80" || name == "gated_sm80") &&
      has(config, {"tile_m", "tile_n", "tile_k", "stages", "warps_m", "warps_n"})) {
    return mma_product(sm, problem, config, weights);
  }
  if (is_chain(name) && has(config, {"tile_m", "tile_inner", "tile_n", "stages", "warps"})) {
    return predict_chain(sm, problem, config);
  }
  if (name == "vector_rows" || name == "vector_columns") {
    return vector_product(sm, problem, config);
  }
  if (name == "gemm_simple" && has(config, {"tile"})) {
    return simple_product(sm, problem, config);
  }
  return std::nullopt;
}

std::vector<KernelConfig> product_settings(const Sm& sm, const Problem& problem) {
  const std::string_view name = problem.contract->name;
  std::vector<KernelConfig> settings;
  if (name == "gemm_sm90") {
    for (const auto& numbers : kWgmmaSettings) {
      settings.push_back(wgmma_setting(numbers));
    }
  } else if (name == "gemm_sm80") {
    for (const auto& numbers : kMmaSettings) {
      settings.push_back(mma_setting(numbers));
    }
  } else if (is_for_few_rows(name)) {
    settings = few_rows_settings(Product(problem).m);
  } else if (name == "gemm_tma" || name == "gemm_rotary" || takes_moments(name)) {
    if (name != "gemm_tma") {
      for (const auto& numbers : kLowRingSettings) {
        settings.push_back(ring_setting(numbers));
      }
    }
    for (const auto& numbers : kRingSettings) {
      settings.push_back(ring_setting(numbers));
    }
  } else if (name == "gated_sm90") {
    for (const auto& numbers : kGatedRingSettings) {
      settings.push_back(ring_setting(numbers));
    }
  } else if (is_normed(name)) {
    for (const auto& s : kNormSettings) {
      settings.push_back({{"tile_m", s[0]}, {"tile_n", s[1]}, {"stages", s[2]}});
    }
  } else if (name == "gated_sm80") {
    for (const auto& s : kGatedMmaSettings) {
      settings.push_back({{"tile_m", s[0]},
                          {"tile_n", s[1]},
                          {"tile_k", s[2]},
                          {"stages", s[3]},
                          {"warps_m", s[4]},
                          {"warps_n", s[5]},
                          {"group_m", 8}});
    }
  } else if (is_chain(name)) {
    settings = chain_settings(problem);
  } else if (name == "vector_rows") {
    settings.push_back(rows_setting(Product(problem)));
  } else if (name == "vector_columns") {
    settings.push_back(columns_setting(Product(problem), sm.device.sm_count));
  } else if (name == "gemm_simple") {
    settings.push_back({{"tile", 64}});
    settings.push_back({{"tile", 32}});
  }
  return settings;
}

}  // namespace stof::cost
