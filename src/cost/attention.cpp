#include "cost/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "contract/evaluate.hpp"
#include "cost/makespan.hpp"
#include "cost/occupancy.hpp"

namespace stof::cost {

namespace {

using kernel::KernelConfig;

constexpr double kKeys = 64;          // of a key tile
constexpr double kBitmapBytes = 512;  // of 64 x 64
constexpr std::int64_t kBatch = 32;   // keys of a row, one a lane

std::int64_t parameter(const KernelConfig& config, const char* name, std::int64_t otherwise) {
  const auto found = config.find(name);
  return found == config.end() ? otherwise : found->second;
}

std::int64_t blocks_at_once(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  if (const auto given = config.find("blocks_per_sm"); given != config.end()) {
    return given->second;  // registers and shared memory are set apart for so many
  }
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

// Keys and values of one (batch, head) pair.
double key_value_bytes(const Problem& problem) {
  const auto& dims = problem.scope->dims;
  return static_cast<double>(dims.at("kv_len") * (dims.at("head_dim") + dims.at("value_dim"))) *
         element_bytes(problem);
}

// How many replicas lists of query tiles or rows go through at a time: their keys and values lie in
// half of L2 together.
std::int64_t replicas_of_section(const Problem& problem, std::int64_t l2_bytes) {
  const double room = static_cast<double>(l2_bytes) / 2 / std::max(key_value_bytes(problem), 1.0);
  return std::clamp(static_cast<std::int64_t>(room), std::int64_t{1}, replicas(problem));
}

// The same of wgmma's lists of tiles, which go through all at once where half of L2 has room for
// all, or no SM has two tiles.
std::int64_t tile_replicas_of_section(const Problem& problem, std::int64_t tile_q,
                                      std::int64_t l2_bytes, std::int64_t sm_count) {
  const auto& dims = problem.scope->dims;
  const double all_bytes =
      static_cast<double>(dims.at("batch") * dims.at("kv_heads")) * key_value_bytes(problem);
  const std::int64_t tiles =
      dims.at("batch") * dims.at("heads") * mask::ceil_div(dims.at("q_len"), tile_q);
  return tiles <= sm_count || 2 * all_bytes <= static_cast<double>(l2_bytes)
             ? replicas(problem)
             : replicas_of_section(problem, l2_bytes);
}

// 64 x 64 with a mask.
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

double mask_wait_ns(const TiledAttention& c, mask::MaskClass mask_class) {
  switch (mask_class) {
    case mask::MaskClass::None:
      return 0;
    case mask::MaskClass::IntervalRows:
      return c.interval_wait_ns;
    default:
      return c.bitmap_wait_ns;
  }
}

template <typename T>
const T& of_template(const std::map<std::string, T, std::less<>>& all, const std::string& name) {
  const auto found = all.find(name);
  return found == all.end() ? all.at("") : found->second;
}

// The dimensions of a head, in units of 64, of keys and values together.
double head_width(const Problem& problem) {
  constexpr double kBoth = 128;
  return static_cast<double>(problem.scope->dims.at("head_dim") +
                             problem.scope->dims.at("value_dim")) /
         kBoth;
}

// Bytes of whole lines of L2 that take as long as what TMA brings of a row. Longer rows than 64
// bytes are so many times that, and odd multiples of 16 take half as long again: on an H200 27 to
// 32 rows of 80 bytes come a nanosecond, where L2 gives 43 lines.
double line_bytes(double row_bytes) {
  constexpr std::int64_t kHalfLine = 64;
  constexpr std::int64_t kSector = 32;
  const auto bytes = static_cast<std::int64_t>(row_bytes);
  if (bytes <= kHalfLine) {
    return row_bytes;
  }
  return static_cast<double>(mask::ceil_div(bytes, kHalfLine) * kHalfLine) *
         (bytes % kSector != 0 ? 1.5 : 1.0);
}

// Of 64 keys and their values.
double box_bytes(const Problem& problem) {
  const auto row = [&](const char* dim) {
    return line_bytes(static_cast<double>(problem.scope->dims.at(dim)) * element_bytes(problem));
  };
  return kKeys * (row("head_dim") + row("value_dim"));
}

// What a block waits for in the tiles of a group.
double waits_us(const Sm& sm, const TiledAttention& c, const KernelConfig& config,
                const TileGroup& group, const AttentionWork& work) {
  constexpr std::int64_t kTallRows = 32;  // of a warp
  const auto entries = static_cast<double>(group.entries);
  const std::int64_t warps = parameter(config, "warps", 0);
  const bool is_tall = warps > 0 && parameter(config, "tile_q", 64) >= kTallRows * warps;
  const auto key_groups = static_cast<double>(parameter(config, "key_groups", 1));
  const double shared =
      entries * (c.keys_wait_ns + (is_tall ? c.tall_wait_ns : 0) +
                 (work.reads_captures ? c.capture_wait_ns : 0)) +
      static_cast<double>(group.part) * mask_wait_ns(c, work.features->mask_class);
  const double steps = entries * kKeys / static_cast<double>(parameter(config, "tile_k", 64));
  const bool has_late_queries = parameter(config, "query_slots", 2) == 1;
  return sm.us(c.tile_wait_ns + (has_late_queries ? c.query_wait_ns : 0) +
               (key_groups > 1 ? c.exchange_wait_ns : 0) + shared / key_groups +
               steps * c.step_wait_ns);
}

// Steps of several tiles are whole ones.
TileWork in_steps(TileWork work, const KernelConfig& config) {
  const std::int64_t tiles = std::max<std::int64_t>(parameter(config, "tile_k", 64) / 64, 1);
  for (TileGroup& group : work.groups) {
    group.entries = mask::ceil_div(group.entries, tiles) * tiles;
  }
  return work;
}

// The work of one replica for some of them, and behind it for others.
std::vector<WorkGroup> in_turn(const std::vector<WorkGroup>& of_replica, std::int64_t first,
                               std::int64_t then) {
  std::vector<WorkGroup> all;
  for (const std::int64_t count : {first, then}) {
    for (const WorkGroup& group : of_replica) {
      all.push_back({group.cost, group.count * count});
    }
  }
  return all;
}

// Blocks that are all there at once are not dealt evenly: some SM has one more than it need have,
// if there is room for it. Those of lists are there early, when the kernel before still has blocks:
// then that goes for somewhat fewer blocks than SMs too.
double one_too_many(const std::vector<WorkGroup>& groups, std::int64_t sm_count,
                    std::int64_t at_once, bool are_lists) {
  std::int64_t blocks = 0;
  for (const WorkGroup& group : groups) {
    blocks += group.count;
  }
  const bool has_room = mask::ceil_div(blocks, sm_count) < at_once;
  const bool are_many = are_lists ? 4 * blocks > 3 * sm_count : blocks > sm_count;
  return are_many && has_room ? groups.front().cost : 0;
}

// Of what DRAM bounds, for each block more on an SM: 162 us with one, 173 to 177 with two, 186 with
// three where 640 heads of 128 dimensions have 32 queries and 2048 keys on an H200.
constexpr double kSlowerReads = 0.05;

constexpr const char* kLists80 = "attention_block_wise_sm80";

// A block of attention_interval_sm90 is as one of band_sm90, once it knows its keys.
const TiledAttention& times_of(const Sm& sm, const contract::TemplateContract& contract) {
  return of_template(sm.coefficients.tiled_attention, contract.name == "attention_interval_sm90"
                                                          ? "attention_band_sm90"
                                                          : contract.name);
}

Prediction tiled_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                           const AttentionWork& work) {
  STOF_CHECK(work.tiles != nullptr) << problem.contract->name << " needs tiles";
  const TiledAttention& c = times_of(sm, *problem.contract);
  const TileWork tiles = in_steps(in_parts(*work.tiles, work.long_tiles), config);
  const mask::MaskClass mask_class = work.features->mask_class;
  const double width = head_width(problem);
  const double rows = static_cast<double>(tiles.tile_q) / 64;  // in units of 64
  const double peak_flops = 4 * 64 * 64 * 64 * width * rows;
  const double block = sm.us(rows * (c.tile_ns + c.tile_dims_ns * width));
  const double tensor =
      c.tensor_part * (c.uses_wgmma ? sm.tensor_us(peak_flops, 1) : sm.mma_us(peak_flops, 1));
  const double core =
      sm.us(rows * (c.softmax_ns + (parameter(config, "overlap", 1) == 0 ? c.plain_ns : 0) +
                    (work.has_score ? c.score_ns : 0)));
  const double masked = sm.us(std::min(rows, 1.0) * mask_ns(c, mask_class));

  std::vector<WorkGroup> shared;  // what tiles of a replica take of an SM
  std::vector<WorkGroup> chains;  // how long they wait
  std::vector<WorkGroup> boxes;   // the 64 keys that they read
  Prediction sum;                 // of all tiles
  double total = 0;
  std::int64_t blocks = 0;
  const std::int64_t copies = replicas(problem);
  for (const TileGroup& group : tiles.groups) {
    const auto entries = static_cast<double>(group.entries);
    const double in_core = entries * core + static_cast<double>(group.part) * masked;
    const double one = block + entries * tensor + in_core;
    shared.push_back({one, group.count});
    chains.push_back({waits_us(sm, c, config, group, work), group.count});
    boxes.push_back({entries, group.count});
    blocks += group.count * copies;
    const auto count = static_cast<double>(group.count * copies);
    sum.blocks_us += count * block;
    sum.tensor_us += count * entries * tensor;
    sum.core_us += count * in_core;
    total += count * one;
  }
  const bool are_lists = takes_long_tiles(*problem.contract);
  const std::int64_t last = are_lists || problem.contract->name == kLists80
                                ? sections(problem, config, work.tiles, work.long_tiles).last
                                : copies;
  shared = in_turn(shared, copies - last, last);
  chains = in_turn(chains, copies - last, last);
  boxes = in_turn(boxes, copies - last, last);
  const std::int64_t at_once = blocks_at_once(sm, problem, config);
  const std::int64_t workers = sm.device.sm_count * at_once;
  const double span = makespan(shared, sm.device.sm_count) +
                      one_too_many(shared, sm.device.sm_count, at_once, are_lists);
  const double of_total = span / total;
  const LongTiles& split = work.long_tiles;
  const auto units = static_cast<double>(
      split.count == 0 ? 0 : mask::ceil_div(split.count * split.parts * copies, workers));
  Prediction time;
  time.start_us = c.start_us +
                  std::min(c.cold_us * width, sm.dram_us(problem.work.bytes, c.dram_share)) +
                  sm.us(units * c.unit_ns +
                        static_cast<double>(split.parts - 1) * c.part_ns * std::sqrt(width));
  time.blocks_us = sum.blocks_us * of_total;
  time.core_us = sum.core_us * of_total;
  time.tensor_us = sum.tensor_us * of_total;
  if (c.uses_wgmma) {  // mma_sync is never so fast
    time.l2_us = sm.l2_us(makespan(boxes, sm.device.sm_count) * box_bytes(problem), c.l2_share);
  }
  time.wait_us = span + makespan(chains, workers);
  time.dram_us = sm.dram_us(
      problem.work.bytes + kBitmapBytes * static_cast<double>(work.features->distinct_bitmaps),
      c.dram_share);
  if (are_lists) {
    const std::int64_t on_an_sm = mask::ceil_div(blocks, sm.device.sm_count);
    time.dram_us *= 1 + kSlowerReads * static_cast<double>(std::min(at_once, on_an_sm) - 1);
  }
  return time;
}

// Of a row, in batches of which each warp takes one in turn.
std::int64_t most_keys_of_warp(std::int64_t keys, std::int64_t warps) {
  const std::int64_t rounds = keys / (kBatch * warps);
  return rounds * kBatch + std::min(kBatch, keys - rounds * kBatch * warps);
}

Prediction gathered_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                              const AttentionWork& work) {
  const GatheredAttention& c =
      of_template(sm.coefficients.gathered_attention, problem.contract->name);
  const mask::MaskFeatures& features = *work.features;
  constexpr double kIndexBytes = 4;
  constexpr int kLoads = 4;  // under way
  const double rows =
      static_cast<double>(problem.scope->dims.at("batch") * problem.scope->dims.at("heads") *
                          problem.scope->dims.at("q_len"));
  const double width = head_width(problem);
  const double row_bytes = 2 * 64 * width * element_bytes(problem);  // of a key and its value
  const std::int64_t warps = parameter(config, "warps_per_row", 1);
  const auto row_warps = static_cast<double>(warps);
  // Half a batch is left over on average, but for rows that all see less than one.
  const double batches =
      std::max({1.0, features.mean_keys / static_cast<double>(kBatch) + 0.5, row_warps});
  const double per_sm = std::ceil(rows / sm.count);
  const double list_bytes =
      kIndexBytes * features.mean_keys *
      static_cast<double>(features.mask_batch * features.mask_heads * features.extent.q_len);
  // The longest rows of the last section begin when those before it are done.
  const std::int64_t last = sections(problem, config, nullptr, {}).last;
  const double before_last = 1 - static_cast<double>(last) / static_cast<double>(replicas(problem));
  const double few_loads =
      1 + c.few_loads * (kLoads / static_cast<double>(parameter(config, "loads", kLoads)) - 1);
  Prediction time;
  time.dram_us = sm.dram_us(problem.work.bytes + list_bytes, c.dram_share);
  time.start_us = c.start_us + std::min(c.cold_us * width, time.dram_us);
  time.blocks_us = sm.us(per_sm * row_warps * (c.row_ns + c.row_width_ns * width));
  time.core_us = sm.us(per_sm * batches * c.batch_ns);
  time.l2_us = sm.l2_us(per_sm * features.mean_keys * row_bytes, c.l2_share);
  time.wait_us =
      before_last * (time.blocks_us + time.core_us + time.l2_us) +
      sm.us(c.row_wait_ns + (c.key_wait_ns + c.key_width_wait_ns * width) * few_loads *
                                static_cast<double>(most_keys_of_warp(features.max_keys, warps)));
  return time;
}

constexpr std::int64_t kWindow = 16;  // rows

// Octets of a window of so many columns, from so many stages. The last one of a stage is half full,
// or there is none.
double octets(double columns, double stages) {
  constexpr double kOctet = 8;
  return columns / kOctet + std::min(columns, stages) / 2;
}

Prediction staged_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                            const AttentionWork& work) {
  const StagedAttention& c = of_template(sm.coefficients.staged_attention, problem.contract->name);
  constexpr double kOctetBytes = 32;  // of a list
  const auto& dims = problem.scope->dims;
  const double width = head_width(problem);
  const std::int64_t warps = parameter(config, "warps", 8);
  const std::int64_t head_windows = mask::ceil_div(dims.at("q_len"), kWindow);
  const std::int64_t windows = dims.at("heads") / dims.at("kv_heads") * head_windows;
  const std::int64_t blocks =
      dims.at("batch") * dims.at("kv_heads") * mask::ceil_div(windows, warps);
  const auto queue = static_cast<double>(mask::ceil_div(blocks, sm.device.sm_count));
  const auto rounds = static_cast<double>(
      mask::ceil_div(blocks, sm.device.sm_count * blocks_at_once(sm, problem, config)));
  // A block goes from the first key that its rows see to the last; those of a band move along.
  const double span = std::min(
      static_cast<double>(dims.at("kv_len")),
      work.windows.span + static_cast<double>(kWindow * (std::min(head_windows, warps) - 1)));
  const double key_stages =
      std::ceil(span / static_cast<double>(parameter(config, "stage_keys", 64)));
  const double mean = octets(work.windows.mean, key_stages);
  const double most = octets(static_cast<double>(work.windows.most), key_stages);
  const double stage_bytes = span * 2 * 64 * width * element_bytes(problem);
  const double list_bytes =
      kOctetBytes * mean *
      static_cast<double>(work.features->mask_batch * work.features->mask_heads * head_windows);
  Prediction time;
  // Nothing hides what memory takes.
  time.start_us = c.start_us + sm.dram_us(problem.work.bytes + list_bytes, c.dram_share);
  time.blocks_us = sm.us(rounds * static_cast<double>(warps) * c.warp_ns);
  // One of the blocks of an SM has the longest window.
  time.core_us =
      sm.us((queue * mean * static_cast<double>(std::min(windows, warps)) + most - mean) *
            (c.octet_ns + c.octet_width_ns * width + (work.has_score ? c.octet_score_ns : 0) +
             (work.reads_captures ? c.octet_capture_ns : 0)));
  time.l2_us = sm.l2_us(queue * stage_bytes, c.l2_share);
  time.wait_us =
      time.blocks_us + sm.l2_us(rounds * stage_bytes, c.l2_share) +
      sm.us(((rounds - 1) * mean + most) * (c.octet_wait_ns + c.octet_width_wait_ns * width));
  return time;
}

bool has_few_keys_by_mma(const std::string& name) {
  return name == "attention_few_keys" || name == "attention_few_keys_bits";
}

// Blocks have all their keys at once.
Prediction few_keys_attention(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const FewKeysAttention& c = sm.coefficients.few_keys_attention;
  contract::ContractScope scope = *problem.scope;
  scope.config = config;
  const auto [x, y, z] = contract::evaluate_launch(*problem.contract, scope).grid;
  const auto queue = static_cast<double>(mask::ceil_div(x * y * z, sm.device.sm_count));
  const auto pieces = static_cast<double>(config.at("pieces") * config.at("warps"));
  Prediction time;
  time.start_us = c.start_us;
  time.core_us = sm.us(queue * pieces * c.piece_ns * head_width(problem));
  return time;
}

constexpr const char* kFewKeysSm90 = "attention_few_keys_sm90";

// The same of 64 or 128 queries.
Prediction few_keys_sm90_attention(const Sm& sm, const Problem& problem,
                                   const KernelConfig& config) {
  const FewKeysSm90Attention& c = sm.coefficients.few_keys_sm90_attention;
  const auto& dims = problem.scope->dims;
  const std::int64_t query_tiles =
      dims.at("batch") * dims.at("heads") * mask::ceil_div(dims.at("q_len"), mask::kTile);
  const std::int64_t panels = mask::ceil_div(dims.at("head_dim"), mask::kTile) +
                              mask::ceil_div(dims.at("value_dim"), mask::kTile);
  const double tiles = static_cast<double>(query_tiles * config.at("tile_k") * panels) /
                       static_cast<double>(mask::kTile * sm.device.sm_count);
  Prediction time;
  time.start_us = c.start_us;
  time.dram_us = sm.dram_us(problem.work.bytes, c.dram_share);
  time.core_us = sm.us(tiles * c.panel_ns);
  return time;
}

constexpr const char* kHeld = "attention_held_sm90";

// Blocks hold all keys of a head.
Prediction held_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                          const AttentionWork& work) {
  const HeldAttention& c = sm.coefficients.held_attention;
  contract::ContractScope scope = *problem.scope;
  scope.config = config;
  const auto [pieces, heads, batch] = contract::evaluate_launch(*problem.contract, scope).grid;
  const auto queue =
      static_cast<double>(mask::ceil_div(pieces * heads * batch, sm.device.sm_count));
  const mask::MaskFeatures& features = *work.features;
  const auto of_head = static_cast<double>(features.active_tiles()) /
                       static_cast<double>(features.mask_batch * features.mask_heads);
  Prediction time;
  time.start_us = queue * c.start_us;
  time.core_us = sm.us(queue * of_head / static_cast<double>(pieces) * c.keys_ns);
  return time;
}

constexpr const char* kShortHeads = "attention_short_heads_sm90";

// Blocks go from head to head, all of whose query tiles see a box of keys at once.
Prediction short_heads_attention(const Sm& sm, const Problem& problem) {
  const ShortHeadsAttention& c = sm.coefficients.short_heads_attention;
  const auto& dims = problem.scope->dims;
  const std::int64_t heads =
      mask::ceil_div(dims.at("batch") * dims.at("heads"), sm.device.sm_count);
  const auto boxes = static_cast<double>(heads * mask::ceil_div(dims.at("kv_len"), mask::kTile));
  Prediction time;
  time.start_us = c.start_us;
  time.core_us = sm.us(boxes * c.box_ns * head_width(problem) / 2);
  return time;
}

constexpr const char* kFewQueries = "attention_few_queries";

Prediction few_queries_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                                 const AttentionWork& work) {
  STOF_CHECK(work.tiles != nullptr) << problem.contract->name << " needs tiles";
  const FewQueriesAttention& c = sm.coefficients.few_queries_attention;
  constexpr double kPiecesPerTile = 4;
  const double width = head_width(problem);
  const std::int64_t parts = config.at("parts");
  const std::int64_t cluster = config.at("cluster");
  const std::int64_t left = parts / cluster;  // sums that meet in memory
  const double more_rows = static_cast<double>(config.at("rows")) / 16 - 1;
  const std::int64_t warps = parts * config.at("warps");
  const std::int64_t longest = work.tiles->groups.empty() ? 0 : work.tiles->groups.front().entries;
  const double pieces = kPiecesPerTile * static_cast<double>(longest);
  const std::int64_t blocks =
      problem.scope->dims.at("batch") * problem.scope->dims.at("heads") * parts;
  const auto queue = static_cast<double>(mask::ceil_div(blocks, sm.device.sm_count));
  const auto rounds = static_cast<double>(
      mask::ceil_div(blocks, sm.device.sm_count * blocks_at_once(sm, problem, config)));
  const double of_block = pieces / static_cast<double>(parts);
  const double piece_bytes = kKeys / kPiecesPerTile * 2 * kKeys * width * element_bytes(problem);
  const double of_warp = std::ceil(pieces / static_cast<double>(warps));
  const double piece = width + c.least_width;
  Prediction time;
  // Nothing hides what comes last: four sums to a thread at a time.
  const std::int64_t sums = problem.scope->dims.at("q_len") *
                            mask::ceil_div(problem.scope->dims.at("value_dim"), 64) * 16;
  const auto sum_rounds = static_cast<double>(mask::ceil_div(sums, 32 * config.at("warps")));
  time.start_us = c.start_us + sm.us(sum_rounds * c.sums_ns);
  if (cluster > 1) {
    time.start_us += sm.us(c.cluster_ns);
  }
  if (left > 1) {
    time.start_us +=
        sm.us(c.exchange_ns + static_cast<double>(left) * c.exchange_part_ns +
              sum_rounds * static_cast<double>(mask::ceil_div(left, 16)) * c.exchange_sums_ns);
  }
  const mask::MaskFeatures& features = *work.features;  // keys that no query sees are not read
  const double seen =
      static_cast<double>(features.active_tiles()) / static_cast<double>(features.tiles);
  const double idle = 1 - static_cast<double>(blocks) / (queue * sm.count);
  time.dram_us = sm.us(c.dram_wait_ns + (rounds - 1) * c.round_ns) +
                 sm.dram_us(problem.work.bytes * seen, c.dram_share) * (1 + idle * c.idle_share);
  time.core_us = sm.us(queue * of_block * c.piece_ns * piece * (1 + more_rows * c.rows_piece));
  time.l2_us = sm.l2_us(queue * of_block * piece_bytes, c.l2_share);
  const double masked = features.mask_class == mask::MaskClass::None ? 0 : c.masked_wait_ns;
  const double piece_wait =
      std::max(c.least_piece_wait_ns,
               c.piece_wait_ns * piece * (1 + more_rows * c.rows_piece_wait)) +
      masked;
  time.wait_us = sm.us(rounds * of_warp * piece_wait);
  return time;
}

constexpr const char* kGlobalLocal = "attention_global_local_sm90";

// Blocks have equal shares of the query tiles.
Prediction global_local_attention(const Sm& sm, const Problem& problem,
                                  const KernelConfig& config) {
  const GlobalLocalAttention& c = sm.coefficients.global_local_attention;
  const contract::ContractScope& scope = *problem.scope;
  const std::int64_t pairs = scope.dims.at("batch") * scope.dims.at("heads");
  const std::int64_t plane_tiles = mask::ceil_div(scope.dims.at("q_len"), mask::kTile);
  const std::int64_t blocks = std::min(pairs * plane_tiles, sm.device.sm_count);
  const auto tiles = static_cast<double>(mask::ceil_div(pairs * plane_tiles, blocks));
  const double keys = static_cast<double>(config.at("tile_k") + config.at("global_keys")) / kKeys;
  const auto global_tiles = static_cast<double>(config.at("global_tiles"));
  Prediction time;
  time.start_us = c.start_us;
  time.dram_us = sm.dram_us(problem.work.bytes, c.dram_share);
  time.core_us = sm.us(tiles * (c.tile_ns + keys * c.keys_ns + global_tiles * c.global_ns));
  return time;
}

constexpr const char* kResident = "attention_resident_sm90";

// Each block has an SM; those of global queries have fewer keys, and put their sums together.
Prediction resident_attention(const Sm& sm, const Problem& problem, const KernelConfig& config) {
  const ResidentAttention& c = sm.coefficients.resident_attention;
  contract::ContractScope scope = *problem.scope;
  scope.config = config;
  const std::int64_t groups = config.at("groups");
  const std::int64_t cluster = config.at("cluster");
  const std::int64_t keys = mask::ceil_div(scope.dims.at("kv_len"), mask::kTile);
  const auto of_local = static_cast<double>(config.at("local_boxes") + config.at("global_boxes"));
  const auto of_global = static_cast<double>(mask::ceil_div(mask::ceil_div(keys, cluster), groups));
  const double added =
      static_cast<double>(groups - 1) * c.group_ns + (cluster > 1 ? c.exchange_ns : 0);
  const double of_block =
      std::max(of_local * c.box_ns, scope.mask_global_tiles > 0 ? of_global * c.box_ns + added : 0);
  const auto [x, y, z] = contract::evaluate_launch(*problem.contract, scope).grid;
  const auto rounds = static_cast<double>(mask::ceil_div(x * y * z, sm.device.sm_count));
  Prediction time;
  time.start_us = c.start_us;
  time.dram_us = sm.dram_us(problem.work.bytes, c.dram_share);
  time.wait_us = sm.us(rounds * of_block);
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
  const auto wide = [](std::int64_t tile_q, std::int64_t tile_k, std::int64_t blocks,
                       std::int64_t overlap, std::int64_t slots = 4, std::int64_t query_slots = 2) {
    return KernelConfig{{"tile_q", tile_q},   {"tile_k", tile_k},
                        {"slots", slots},     {"blocks_per_sm", blocks},
                        {"overlap", overlap}, {"query_slots", query_slots}};
  };
  const auto rows = [](std::int64_t warps, std::int64_t per_row, std::int64_t loads,
                       std::int64_t warps_per_sm) {
    return KernelConfig{{"warps", warps},
                        {"warps_per_row", per_row},
                        {"loads", loads},
                        {"warps_per_sm", warps_per_sm}};
  };
  const auto staged = [](std::int64_t warps, std::int64_t stage_keys, std::int64_t stages) {
    return KernelConfig{{"warps", warps}, {"stage_keys", stage_keys}, {"stages", stages}};
  };
  const auto few = [](std::int64_t warps, std::int64_t parts, std::int64_t cluster,
                      std::int64_t q_rows) {
    return KernelConfig{{"warps", warps}, {"parts", parts}, {"cluster", cluster}, {"rows", q_rows}};
  };
  static const std::map<std::string, std::vector<KernelConfig>, std::less<>> settings = {
      {kFewQueries, {few(8, 4, 1, 16),  few(8, 1, 1, 16),  few(8, 2, 1, 16),  few(8, 2, 2, 16),
                     few(8, 4, 4, 16),  few(8, 8, 1, 16),  few(8, 8, 8, 16),  few(8, 16, 1, 16),
                     few(8, 32, 1, 16), few(8, 32, 8, 16), few(4, 1, 1, 16),  few(4, 2, 1, 16),
                     few(4, 2, 2, 16),  few(4, 4, 1, 16),  few(4, 4, 4, 16),  few(4, 8, 1, 16),
                     few(4, 8, 8, 16),  few(4, 16, 1, 16), few(4, 32, 1, 16), few(4, 32, 8, 16),
                     few(4, 64, 1, 16), few(4, 64, 8, 16), few(8, 1, 1, 32),  few(8, 2, 1, 32),
                     few(8, 2, 2, 32),  few(8, 4, 1, 32),  few(8, 4, 4, 32),  few(8, 8, 1, 32),
                     few(8, 8, 8, 32),  few(8, 16, 1, 32), few(4, 1, 1, 32),  few(4, 4, 1, 32),
                     few(4, 8, 1, 32),  few(4, 2, 1, 32),  few(4, 2, 2, 32),  few(4, 16, 1, 32)}},
      {kLists80,
       {tiles(64, 64, 1), tiles(64, 64, 2), tiles(64, 32, 4), tiles(128, 64, 1),
        tiles(128, 32, 1)}},
      {"attention_block_wise_sm90",
       {wide(64, 64, 4, 0, 3), wide(64, 64, 3, 1, 5), wide(64, 64, 3, 1, 3, 1),
        wide(64, 64, 3, 0, 3, 1), wide(64, 64, 1, 1), wide(64, 64, 2, 1), wide(64, 64, 2, 0, 3, 1),
        wide(64, 128, 2, 1), wide(128, 64, 2, 0), wide(128, 64, 1, 1, 8), wide(128, 64, 1, 1, 5),
        wide(128, 64, 1, 1, 4, 1), wide(128, 128, 1, 1), wide(192, 128, 1, 1, 5),
        wide(192, 128, 1, 0, 3), wide(192, 64, 1, 1, 6)}},
      {"attention_packed_sm90",
       {wide(64, 64, 4, 0, 3), wide(64, 64, 3, 1, 5), wide(64, 64, 3, 1, 3, 1),
        wide(64, 64, 3, 0, 3, 1), wide(64, 64, 2, 1), wide(64, 128, 2, 1), wide(128, 64, 2, 0),
        wide(128, 64, 1, 1, 8), wide(128, 64, 1, 1, 5), wide(128, 64, 1, 1, 4, 1),
        wide(128, 128, 1, 1)}},
      {"attention_row_wise",
       {rows(4, 1, 4, 24), rows(4, 4, 4, 24), rows(8, 8, 4, 24), rows(4, 1, 2, 32)}},
      {"attention_row_wise_staged",
       {staged(24, 288, 3), staged(12, 288, 3), staged(8, 288, 3), staged(16, 144, 3),
        staged(16, 128, 3), staged(12, 128, 3), staged(8, 128, 3), staged(4, 128, 3),
        staged(8, 64, 3), staged(4, 64, 3), staged(8, 64, 2), staged(4, 64, 2)}},
  };
  return settings;
}

}  // namespace

bool takes_long_tiles(const contract::TemplateContract& contract) {
  return contract.name == "attention_block_wise_sm90" || contract.name == "attention_packed_sm90";
}

LongTiles long_tiles(const Problem& problem, const KernelConfig& config, const TileWork& tiles) {
  // Sums of wider values in larger tiles keep the next tile waiting, up to 34 % longer by times on
  // an H200 with 192 and 256 dimensions.
  constexpr std::int64_t kWidestInLargeTiles = 128;
  // Keys of so few queries are shared out by a kernel of their own.
  const contract::ContractScope& scope = *problem.scope;
  const bool is_wide = scope.dims.at("value_dim") > kWidestInLargeTiles;
  if (!takes_long_tiles(*problem.contract) || scope.dims.at("q_len") <= kFewQueryRows ||
      (is_wide && tiles.tile_q > mask::kTile)) {
    return {};
  }
  const std::int64_t sm_count = scope.device.at("device.sm_count");
  const std::int64_t section =
      tile_replicas_of_section(problem, tiles.tile_q, scope.device.at("device.l2_bytes"), sm_count);
  return long_tiles(tiles, replicas(problem), section, sm_count, config.at("blocks_per_sm"),
                    is_wide);
}

Sections sections(const Problem& problem, const KernelConfig& config, const TileWork* tiles,
                  const LongTiles& long_tiles) {
  const std::int64_t copies = replicas(problem);
  const std::int64_t l2_bytes = problem.scope->device.at("device.l2_bytes");
  if (!takes_long_tiles(*problem.contract)) {
    return sections(copies, replicas_of_section(problem, l2_bytes));
  }
  const std::int64_t sm_count = problem.scope->device.at("device.sm_count");
  const std::int64_t most =
      tile_replicas_of_section(problem, config.at("tile_q"), l2_bytes, sm_count);
  // Packed tiles take as long either way.
  if (tiles == nullptr || long_tiles.parts > 1 ||
      problem.contract->name != "attention_block_wise_sm90") {
    return sections(copies, most);
  }
  const auto& dims = problem.scope->dims;
  return sections_of_waves(*tiles, copies, most, sm_count * config.at("blocks_per_sm"),
                           dims.at("heads") / dims.at("kv_heads"));
}

Prediction predict_attention(const Sm& sm, const Problem& problem, const KernelConfig& config,
                             const AttentionWork& work) {
  const auto has = [&](std::initializer_list<const char*> parameters) {  // not one of a user's
    return std::all_of(parameters.begin(), parameters.end(),
                       [&](const char* name) { return config.contains(name); });
  };
  if (problem.contract->name == kFewQueries && has({"parts", "cluster", "warps", "rows"})) {
    return few_queries_attention(sm, problem, config, work);
  }
  if (has_few_keys_by_mma(problem.contract->name) && has({"pieces", "warps"})) {
    return few_keys_attention(sm, problem, config);
  }
  if (problem.contract->name == kFewKeysSm90 && has({"tile_k"})) {
    return few_keys_sm90_attention(sm, problem, config);
  }
  if (problem.contract->name == kHeld && has({"pieces"})) {
    return held_attention(sm, problem, config, work);
  }
  if (problem.contract->name == kShortHeads && has({"slots"})) {
    return short_heads_attention(sm, problem);
  }
  if (problem.contract->name == kResident &&
      has({"groups", "local_boxes", "global_boxes", "cluster"})) {
    return resident_attention(sm, problem, config);
  }
  if (problem.contract->name == kGlobalLocal && has({"tile_k", "global_keys", "global_tiles"})) {
    return global_local_attention(sm, problem, config);
  }
  if (problem.contract->takes_mask_array("window_col")) {
    return staged_attention(sm, problem, config, work);
  }
  return problem.contract->takes_mask_array("key_col")
             ? gathered_attention(sm, problem, config, work)
             : tiled_attention(sm, problem, config, work);
}

std::vector<KernelConfig> attention_settings(const Problem& problem) {
  const auto found = settings_by_template().find(problem.contract->name);
  if (found == settings_by_template().end()) {
    return {};
  }
  std::vector<KernelConfig> settings = found->second;
  // The model does not see how many places there are, of which eight fit up to 128 columns, and
  // more than three beside another block.
  constexpr std::int64_t kWidestOfEight = 128;
  if (takes_long_tiles(*problem.contract) &&
      std::max(problem.scope->dims.at("head_dim"), problem.scope->dims.at("value_dim")) <=
          kWidestOfEight) {
    std::erase_if(settings, [](const KernelConfig& one) {
      return (one.at("tile_q") == 128 && one.at("slots") == 5) ||
             (one.at("blocks_per_sm") == 2 && one.at("slots") == 3);
    });
  }
  // Half of a larger tile would be empty, which the model does not mind where DRAM is all that
  // counts.
  if (takes_long_tiles(*problem.contract) && problem.scope->dims.at("q_len") <= mask::kTile) {
    std::erase_if(settings, [](const KernelConfig& one) { return one.at("tile_q") > mask::kTile; });
  }
  return settings;
}

}  // namespace stof::cost
