#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "expr/evaluate.hpp"

namespace stof::contract {

// What the names in a header stand for in one use of the template.
struct ContractScope {
  std::map<std::string, std::int64_t> dims;  // "hidden" -> 768
  std::map<std::string, double> attributes;  // "epsilon" -> 1e-5; as declared in the pattern
  // "activated" -> "gelu": the operator that makes it, where it is not the first that may.
  std::map<std::string, std::string> operators = {};
  std::map<std::string, DType> dtypes;                  // "T" -> float16
  std::map<std::string, std::int64_t> strides = {};     // "x.tokens" -> 768, in elements
  std::map<std::string, std::int64_t> device;           // "device.sm" -> 90; all of kDeviceScalars
  std::map<std::string, std::int64_t> alignments = {};  // "x" -> 16: of its base, in bytes
  std::int64_t mask_batch = 1;                          // mask.batch and mask.heads
  std::int64_t mask_heads = 1;
  std::int64_t mask_long_tiles = 0;  // mask.long_tiles and mask.parts
  std::int64_t mask_parts = 1;
  std::int64_t mask_section = 1;  // mask.section and mask.last_section
  std::int64_t mask_last_section = 1;
  std::int64_t mask_band_first = -(1 << 30);  // mask.band_first and mask.band_end
  std::int64_t mask_band_end = 1 << 30;
  std::int64_t mask_local_first = 0;  // mask.local_first, and so on
  std::int64_t mask_local_keys = 64;
  std::int64_t mask_global_keys = 64;
  std::int64_t mask_global_tiles = 1;
  std::array<std::int64_t, 2> mask_global_keys_at = {-1, -1};
  std::array<std::int64_t, 2> mask_global_queries_at = {-1, -1};
  std::int64_t mask_score_tiles = 0;
  kernel::KernelConfig config;  // every parameter
};

struct LaunchGeometry {
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 3> block{1, 1, 1};
  std::array<std::int64_t, 3> cluster{1, 1, 1};
  std::int64_t shared_bytes = 0;  // declared
  std::int64_t workspace_bytes = 0;
};

struct WorkEstimate {
  double flops = 0;
  double bytes = 0;
};

// The settings of all parameters, each at its default.
kernel::KernelConfig default_config(const TemplateContract& contract);

// The first constraint of the contract that does not hold; nothing (null) where the template may be
// used. Reads everything of the scope but the config.
const Constraint* violated_constraint(const TemplateContract& contract, const ContractScope& scope);

// Whether the restrictions allow the scope's config.
bool is_allowed(const TemplateContract& contract, const ContractScope& scope);

// Every setting that the restrictions allow, in the order of the header; the scope's own config is
// not read.
std::vector<kernel::KernelConfig> allowed_configs(const TemplateContract& contract,
                                                  ContractScope scope);

// Throws GraphError where an extent is out of range, a block has more than 1024 threads, a cluster
// has more than 8 blocks or does not divide the grid, or bytes are negative or more than a block
// may have: "contract rms_norm: grid[0] = ceil_div(dim.tokens, 4) is 0, the least is 1".
LaunchGeometry evaluate_launch(const TemplateContract& contract, const ContractScope& scope);

// Why the scalars of a launch cannot be passed: an int that takes more than 32 bits, where those
// that read a stride have 64. Nothing where they can.
std::optional<std::string> argument_fault(const TemplateContract& contract,
                                          const ContractScope& scope);

// What evaluate_launch or tensor_map_boxes says against a launch; nothing where it may be.
std::optional<std::string> launch_fault(const TemplateContract& contract,
                                        const ContractScope& scope);

// What the author declares of one block; what is less than nothing counts as nothing, here and in
// evaluate_cost.
struct ResourceEstimate {
  std::int64_t threads = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t registers = 0;  // a thread
};

ResourceEstimate evaluate_resources(const TemplateContract& contract, const ContractScope& scope);

WorkEstimate evaluate_cost(const TemplateContract& contract, const ContractScope& scope);

// The scalar arguments of the kernel, in order of launch.arguments; ports and workspace are
// skipped.
std::vector<expr::Value> scalar_arguments(const TemplateContract& contract,
                                          const ContractScope& scope);

// The bytes of each argument of launch.arguments: 128 of a tensor map, 8 of a pointer and of a
// scalar that is wide, 4 of an int and a float, 1 of a bool.
std::vector<std::int64_t> argument_bytes(const TemplateContract& contract,
                                         const ContractScope& scope);

// What each argument of launch.arguments is: a port, an array of the mask or an expression.
std::vector<std::string> argument_texts(const TemplateContract& contract);

// Whether a port lies together along the axis before its last and not along the last; TMA then
// takes the two in the other order.
bool lies_transposed(const Port& port, const ContractScope& scope);

// The boxes of its tensor maps, in the same order. Throws GraphError for what the GPU does not
// copy: more than 256 of an axis, or another innermost axis than of 128 bytes.
std::vector<std::vector<std::int64_t>> tensor_map_boxes(const TemplateContract& contract,
                                                        const ContractScope& scope);

}  // namespace stof::contract
