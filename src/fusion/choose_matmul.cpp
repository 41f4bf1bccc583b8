#include "fusion/choose_matmul.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "contract/evaluate.hpp"
#include "mask/bits.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;
using mask::ceil_div;

struct Product {
  std::int64_t batch, m, n, k;
  std::int64_t sm_count, shared_bytes_per_sm;

  explicit Product(const Use& use)
      : batch(use.dim("batch")),
        m(use.dim("m")),
        n(use.dim("n")),
        k(use.dim("k")),
        sm_count(use.scope.device.at("device.sm_count")),
        shared_bytes_per_sm(use.scope.device.at("device.shared_bytes_per_sm")) {}

  std::int64_t blocks(std::int64_t tile_m, std::int64_t tile_n) const {
    return batch * ceil_div(m, tile_m) * ceil_div(n, tile_n);
  }
};

constexpr std::int64_t kReservedSharedBytes = 1024;  // of each block, by CUDA
constexpr std::int64_t kRegistersPerSm = 65536;

struct Sm90Tile {
  std::int64_t tile_m, tile_n, stages, split_k;

  KernelConfig config() const {
    return {{"tile_m", tile_m},
            {"tile_n", tile_n},
            {"stages", stages},
            {"group_m", 8},
            {"split_k", split_k}};
  }

  // In nanoseconds: start and end of the blocks that an SM runs one after another, then steps of 64
  // along k, each bound by the tensor cores, by shared memory or by the latency of the copies. The
  // numbers fit 120 shapes on an H200 to 9 %.
  double time(const Product& product) const {
    const std::int64_t blocks = product.blocks(tile_m, tile_n) * split_k;
    const std::int64_t steps = ceil_div(ceil_div(product.k, 64), split_k);
    const std::int64_t shared =
        std::max(stages * (tile_m + tile_n) * 128, tile_m * (tile_n + 8) * 4) +
        kReservedSharedBytes;
    const std::int64_t at_once =
        std::max<std::int64_t>(1, std::min(product.shared_bytes_per_sm / shared,
                                           kRegistersPerSm / (2 * tile_m * (tile_n / 2 + 64))));
    // Clusters do not fill every SM.
    const std::int64_t queue =
        ceil_div(blocks, std::max<std::int64_t>(1, product.sm_count - 4 * (split_k - 1)));
    const auto rounds = static_cast<double>(ceil_div(queue, at_once));
    const auto area = static_cast<double>(queue * tile_m * tile_n);
    const double step =
        std::max({area * 0.0217, static_cast<double>(queue * (tile_m + tile_n)) * 1.51,
                  rounds * 1080 / static_cast<double>(stages - 1)});
    const double exchange = split_k == 1 ? 0 : 925 + static_cast<double>(tile_m * tile_n) * 0.054;
    return rounds * 1230 + area * 0.0862 + static_cast<double>(steps) * step + exchange;
  }
};

constexpr std::array<Sm90Tile, 23> kSm90Tiles = {{
    {64, 32, 8, 1},   {64, 32, 6, 2},   {64, 32, 6, 4},   {64, 64, 8, 1},   {64, 64, 6, 2},
    {64, 64, 6, 4},   {64, 128, 8, 1},  {64, 128, 6, 2},  {64, 128, 6, 4},  {128, 64, 8, 1},
    {128, 64, 8, 2},  {128, 64, 8, 4},  {128, 96, 6, 1},  {128, 96, 6, 2},  {128, 128, 6, 1},
    {128, 128, 6, 2}, {128, 128, 6, 4}, {128, 192, 5, 1}, {128, 192, 5, 2}, {192, 192, 4, 1},
    {256, 128, 4, 1}, {256, 128, 4, 2}, {128, 256, 4, 1},
}};

struct Sm80Tile {
  std::int64_t tile_m, tile_n, tile_k, stages, warps_m, warps_n, split_k;

  KernelConfig config() const {
    return {{"tile_m", tile_m},   {"tile_n", tile_n},   {"tile_k", tile_k}, {"stages", stages},
            {"warps_m", warps_m}, {"warps_n", warps_n}, {"group_m", 8},     {"split_k", split_k}};
  }

  // As above, with shared memory read once for each row and column of warps; fitted to 14 %.
  double time(const Product& product) const {
    const std::int64_t blocks = product.blocks(tile_m, tile_n) * split_k;
    const std::int64_t steps = ceil_div(ceil_div(product.k, 64), split_k);
    const std::int64_t threads = 32 * warps_m * warps_n;
    const std::int64_t shared = stages * (tile_m + tile_n) * tile_k * 2 + kReservedSharedBytes;
    const std::int64_t registers = std::min<std::int64_t>(255, tile_m * tile_n / threads + 110);
    const std::int64_t at_once = std::max<std::int64_t>(
        1, std::min(product.shared_bytes_per_sm / shared, kRegistersPerSm / (threads * registers)));
    const std::int64_t queue = ceil_div(blocks, product.sm_count);
    const auto step = [&](std::int64_t sharing) {  // of as many blocks as share an SM
      const auto count = static_cast<double>(sharing);
      const auto reads =
          static_cast<double>(tile_m * (warps_n + 1) + tile_n * (warps_m + 1)) * 0.62;
      return std::max({count * static_cast<double>(tile_m * tile_n) * 0.036, count * reads,
                       38656 / static_cast<double>((stages - 1) * tile_k), 77.0});
    };
    const std::int64_t full = queue / at_once;
    const std::int64_t rest = queue % at_once;
    const double multiply =
        static_cast<double>(steps) *
        (static_cast<double>(full) * step(at_once) + (rest == 0 ? 0 : step(rest)));
    return static_cast<double>(ceil_div(queue, at_once)) * 1920 +
           static_cast<double>(queue * tile_m * tile_n) * 0.0688 + multiply +
           (split_k == 1 ? 0 : 3920);
  }
};

constexpr std::array<Sm80Tile, 7> kSm80Tiles = {{
    {32, 32, 64, 4, 2, 2, 1},
    {32, 64, 64, 4, 2, 2, 1},
    {64, 64, 64, 4, 2, 2, 1},
    {64, 64, 64, 4, 2, 2, 4},
    {64, 128, 64, 3, 2, 2, 1},
    {128, 128, 32, 4, 2, 2, 1},
    {128, 256, 64, 3, 2, 4, 1},
}};

template <typename Tiles>
KernelConfig fastest(const Use& use, const Tiles& tiles) {
  const Product product(use);
  contract::ContractScope scope = use.scope;
  KernelConfig best;
  double best_time = std::numeric_limits<double>::infinity();
  for (const auto& tile : tiles) {
    scope.config = tile.config();
    const double time = tile.time(product);
    if (time < best_time && contract::is_allowed(use.kernel->contract, scope)) {
      best = scope.config;
      best_time = time;
    }
  }
  return best;
}

// A warp reads 64 chunks of 8 weights before it pays to let another one help.
KernelConfig rows_config(const Product& product) {
  std::int64_t parts = 1;
  while (parts < 8 && product.k / 8 > 64 * parts) {
    parts *= 2;
  }
  const bool is_tall = product.m > 2;
  return {{"columns", parts == 8 || is_tall ? 2 : 1},
          {"parts", is_tall ? std::min<std::int64_t>(parts, 4) : parts}};
}

// Four blocks an SM, as long as there is enough of k.
KernelConfig columns_config(const Product& product) {
  std::int64_t split = 1;
  while (split < 16 && ceil_div(product.n, 64) * split * 2 <= 4 * product.sm_count &&
         64 * split <= product.k / 8) {
    split *= 2;
  }
  return {{"chunks", 8}, {"split_k", split}};
}

}  // namespace

std::optional<int> matmul_rank(const Use& use) {
  constexpr std::array<std::string_view, 5> kSlowestFirst = {
      "gemm_simple", "gemm_sm80", "vector_columns", "gemm_sm90", "vector_rows"};
  const auto found =
      std::find(kSlowestFirst.begin(), kSlowestFirst.end(), use.kernel->contract.name);
  return found == kSlowestFirst.end()
             ? std::nullopt
             : std::optional(static_cast<int>(found - kSlowestFirst.begin()));
}

KernelConfig choose_matmul_config(const Use& use) {
  const std::string& name = use.kernel->contract.name;
  if (name == "gemm_sm90") {
    return fastest(use, kSm90Tiles);
  }
  if (name == "gemm_sm80") {
    return fastest(use, kSm80Tiles);
  }
  if (name == "vector_rows") {
    return rows_config(Product(use));
  }
  if (name == "vector_columns") {
    return columns_config(Product(use));
  }
  if (name == "gemm_simple") {
    const Product product(use);
    return {{"tile", product.blocks(64, 64) < product.sm_count ? 32 : 64}};
  }
  return {};
}

}  // namespace stof::fusion
