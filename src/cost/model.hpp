#pragma once

#include "base/device_profile.hpp"
#include "contract/evaluate.hpp"
#include "cost/attention_work.hpp"
#include "cost/coefficients.hpp"
#include "cost/prediction.hpp"

// How long a kernel will take, before it is compiled.
//
// Every formula counts what one SM does. R(rate) is a rate of the DeviceProfile times its share of
// the Coefficients, divided by the number of SMs.
//
// A product of tiles (gemm_sm80, gemm_sm90, gated_sm80): `queue` blocks go to the busiest SM,
// `rounds` times as many as fit at once, and each goes through `steps` of 64 along k:
//   blocks = rounds block_ns + queue tile_m tile_n element_ns + exchange, where k is split
//   tensor = steps queue 128 tile_m tile_n / R(tensor)
//   l2     = steps queue 128 (tile_m + tile_n) / R(l2)     gemm_sm80: what its warps read of shared
//                                                          memory, which is more
//   wait   = blocks + steps max(rounds copy_ns / (stages - 1), columns column_ns), of gemm_sm90
//            the columns of w that one tile takes all rows of x to
//   dram   = bytes of the contract / R(dram)
//   core   = queue tile_m tile_n transcendental_ns for each gelu, exp … of the epilogue, and the
//            tensors that it reads / R(dram)
//
// gemm_tma and gated_sm90, whose blocks stay, take of an SM
//   blocks = block_ns + queue tile_ns + queue tile_m tile_n element_ns
//   wait   = blocks + steps queue copy_ns / stages
// A gated product reads twice tile_n columns of weights, and counts its activation. gemm_norm and
// gemm_sum_norm are the same in clusters, with
//   blocks + queue exchange_ns + queue tile_m tile_n norm_element_ns
//
// Two products in one launch have first.blocks + second.blocks, `rounds` times as many as run at
// once but at least twice, whose warps share the steps of a block:
//   blocks = rounds block_ns
//   l2     = 128 (rows + columns) of each step of each block / R(l2)
//   wait   = rounds round_ns + units of a warp unit_ns + (split - 1) exchange_ns
//            + exposed_share l2
//
// Attention over tiles: query tiles with the most key tiles go first, but for those that are worked
// on in parts. One of r 64 query rows that has e key tiles, of which p carry a mask, takes of an
// SM, for w times 64 dimensions a head,
//   blocks = r (tile_ns + w tile_dims_ns)      tensor = r e tensor_part w 4 64 64 64 / R(tensor)
//   core   = r e softmax_ns + p (what the class of the mask takes)
//   l2     = e 64 keys and values / R(l2), of wgmma
// and the busiest SM is done at the makespan of these, or one later where more than one block has
// room on it and not all places are taken; blocks, core and tensor share it in proportion. A block
// waits besides for
//   tile_wait_ns + e keys_wait_ns + (e 64 / tile_k) step_wait_ns + p (by the class),
// which is less with several key groups, and for query_wait_ns too if it has room for the queries
// of one tile: wait is the makespan of these over all blocks that are there at once, and that of
// the SMs. Lists go through heads in sections, the last of which begins when the others are done.
// Memory takes dram; the first cold_us of it come in front of all else.
//
// Attention over rows: blocks = row_ns + w row_width_ns for each warp, core = batch_ns ceil(keys /
// 32), l2 = a K and a V row for each key; wait is the longest row, in one warp or several, behind
// all sections but the last.
//
// Attention over windows of 16 rows, from stages: a window sees 1 - (1 - share)^16 of the keys of
// its tiles, in octets of eight. blocks = rounds warps warp_ns, core = octets of the busiest SM
// (octet_ns + w octet_width_ns), l2 = K and V once for each of its blocks; wait is the longest
// window after those of the rounds before, and the stages of all rounds. dram comes in front.
//
// All else: dram, and flops of the ordinary cores. A norm starts later the more elements a thread
// has, and the more warps a row.
namespace stof::cost {

// What a chain of elementwise operators behind a kernel takes.
struct Epilogue {
  int transcendentals = 0;  // operators that need one: gelu, silu, tanh, sigmoid, exp, …
  double bytes = 0;         // of tensors that it reads
};

// One template for one group of operators.
struct Problem {
  const contract::TemplateContract* contract = nullptr;
  const contract::ContractScope* scope = nullptr;  // its config is not read
  contract::WorkEstimate work;                     // what the contract says of it
  Epilogue epilogue;
};

// work is that of the contract with the default setting, but no more bytes than the tensors have
// that take part, since a contract counts optional ones too.
Problem make_problem(const contract::TemplateContract& contract,
                     const contract::ContractScope& scope, const Epilogue& epilogue,
                     double tensor_bytes);

// Of so many rows of queries to a head, or fewer, no kernel shares the keys out but
// few_queries.jinja, whose blocks of rows they are.
inline constexpr std::int64_t kFewQueryRows = 16;

// Whether an attention template can work on long query tiles in parts, and which ones a setting of
// it is to, out of these.
bool takes_long_tiles(const contract::TemplateContract& contract);
LongTiles long_tiles(const Problem& problem, const kernel::KernelConfig& config,
                     const TileWork& tiles);

// How a setting of an attention template goes along the replicas. `tiles` are null where the kernel
// gathers rows, or the mask is not known before it runs.
Sections sections(const Problem& problem, const kernel::KernelConfig& config, const TileWork* tiles,
                  const LongTiles& long_tiles);

class Model {
 public:
  explicit Model(base::DeviceProfile device, Coefficients coefficients = {});

  // The time of a launch with this setting, of an attention where there is `attention`. The setting
  // need not be one that the restrictions allow.
  Prediction predict(const Problem& problem, const kernel::KernelConfig& config,
                     const AttentionWork* attention = nullptr) const;

  // Settings worth a prediction: for the shipped kernels those that were the best for some shape,
  // not all of them allowed; none for other templates, whose defaults are taken. Of an attention
  // only the contract counts, and the dimensions of lists of tiles.
  std::vector<kernel::KernelConfig> settings(const Problem& problem) const;

  const base::DeviceProfile& device() const { return device_; }

 private:
  base::DeviceProfile device_;
  Coefficients coefficients_;
};

}  // namespace stof::cost
