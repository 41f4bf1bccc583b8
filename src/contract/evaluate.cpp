#include "contract/evaluate.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "contract/scalars.hpp"
#include "expr/transform.hpp"
#include "stof/error.hpp"

namespace stof::contract {

namespace {

constexpr std::int64_t kMaxExtent =
    0x7fffffff;                             // of a grid; CUDA's own limits on y and z are 65535
constexpr std::int64_t kMaxThreads = 1024;  // of a block
constexpr std::int64_t kMaxWorkspaceBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBoxExtent = 256;  // of a tensor map
constexpr std::int64_t kBoxRowBytes = 128;

expr::Value attribute_value(const PatternAttribute& attribute, double value) {
  switch (attribute.type) {
    case ScalarType::Int:
      return static_cast<std::int64_t>(value);
    case ScalarType::Bool:
      return value != 0;
    default:
      return value;
  }
}

template <typename Map>
std::optional<expr::Value> found_in(const Map& map, const std::string& name) {
  const auto found = map.find(name);
  return found == map.end() ? std::nullopt : std::optional<expr::Value>(found->second);
}

// What the formulas of the contract may read: "dim.hidden", "device.sm".
class Names {
 public:
  Names(const TemplateContract& contract, const ContractScope& scope)
      : contract_(contract), scope_(scope) {}

  std::optional<expr::Value> operator()(const std::string& name) const {
    const std::size_t dot = name.find('.');
    const std::string_view kind = std::string_view(name).substr(0, dot);
    const std::string what = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (kind == "dim") {
      return found_in(scope_.dims, what);
    }
    if (kind == "param") {
      return found_in(scope_.config, what);
    }
    if (kind == "stride") {
      return found_in(scope_.strides, what);
    }
    if (kind == "alignment") {
      return found_in(scope_.alignments, what);
    }
    if (kind == "device") {
      return found_in(scope_.device, name);
    }
    if (kind == "size") {
      const auto dtype = scope_.dtypes.find(what);
      return dtype == scope_.dtypes.end()
                 ? std::nullopt
                 : std::optional<expr::Value>(std::int64_t{size_bytes(dtype->second)});
    }
    return kind == "attr" ? attribute(what) : of_mask(what);
  }

 private:
  std::optional<expr::Value> attribute(const std::string& name) const {
    const auto value = scope_.attributes.find(name);
    for (const PatternStep& step : contract_.pattern) {
      for (const PatternAttribute& of_step : step.attributes) {
        if (value != scope_.attributes.end() && of_step.name == name && !of_step.value) {
          return attribute_value(of_step, value->second);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<expr::Value> of_mask(std::string_view name) const {
    const std::pair<std::string_view, std::int64_t> known[] = {
        {"batch", scope_.mask_batch},
        {"heads", scope_.mask_heads},
        {"long_tiles", scope_.mask_long_tiles},
        {"parts", scope_.mask_parts},
        {"section", scope_.mask_section},
        {"last_section", scope_.mask_last_section},
        {"band_first", scope_.mask_band_first},
        {"band_end", scope_.mask_band_end},
        {"local_first", scope_.mask_local_first},
        {"local_keys", scope_.mask_local_keys},
        {"global_keys", scope_.mask_global_keys},
        {"global_tiles", scope_.mask_global_tiles},
        {"global_keys_at_0", scope_.mask_global_keys_at[0]},
        {"global_keys_at_1", scope_.mask_global_keys_at[1]},
        {"global_queries_at_0", scope_.mask_global_queries_at[0]},
        {"global_queries_at_1", scope_.mask_global_queries_at[1]},
        {"score_tiles", scope_.mask_score_tiles}};
    for (const auto& [scalar, value] : known) {
      if (scalar == name) {
        return value;
      }
    }
    return std::nullopt;
  }

  const TemplateContract& contract_;
  const ContractScope& scope_;
};

int element_bytes(const Port& port, const ContractScope& scope) {
  const auto symbol = scope.dtypes.find(port.dtype);
  return size_bytes(symbol != scope.dtypes.end() ? symbol->second : *dtype_from_name(port.dtype));
}

class LaunchEvaluator {
 public:
  LaunchEvaluator(const TemplateContract& contract, const ContractScope& scope)
      : contract_(contract), names_(contract, scope) {
    const auto limit = scope.device.find("device.shared_bytes_per_block");
    most_shared_bytes_ = limit == scope.device.end() ? kMaxExtent : limit->second;
  }

  LaunchGeometry evaluate() const {
    LaunchGeometry geometry;
    geometry.grid = extents("grid", contract_.launch.grid);
    geometry.block = extents("block", contract_.launch.block);
    geometry.cluster = extents("cluster", contract_.launch.cluster);
    geometry.shared_bytes =
        in_range("shared_bytes", contract_.resources.shared_bytes, 0, most_shared_bytes_);
    geometry.workspace_bytes =
        in_range("workspace", contract_.workspace.bytes, 0, kMaxWorkspaceBytes);
    const std::int64_t threads = geometry.block[0] * geometry.block[1] * geometry.block[2];
    if (threads > kMaxThreads) {
      throw GraphError(fmt::format(
          "contract {}: a block of {} x {} x {} has {} threads, the most is {}", contract_.name,
          geometry.block[0], geometry.block[1], geometry.block[2], threads, kMaxThreads));
    }
    check_cluster(geometry);
    return geometry;
  }

 private:
  void check_cluster(const LaunchGeometry& geometry) const {
    constexpr std::int64_t kMostBlocks = 8;  // that every GPU with clusters takes
    const auto& cluster = geometry.cluster;
    const std::int64_t blocks = cluster[0] * cluster[1] * cluster[2];
    if (blocks > kMostBlocks) {
      throw GraphError(fmt::format("contract {}: a cluster has {} blocks, the most is {}",
                                   contract_.name, blocks, kMostBlocks));
    }
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      if (geometry.grid[i] % cluster[i] != 0) {
        throw GraphError(fmt::format("contract {}: cluster[{}] is {}, and grid[{}] no multiple: {}",
                                     contract_.name, i, cluster[i], i, geometry.grid[i]));
      }
    }
  }

  std::array<std::int64_t, 3> extents(const char* what,
                                      const std::vector<expr::Formula>& list) const {
    const bool is_grid = &list == &contract_.launch.grid;
    std::array<std::int64_t, 3> values{1, 1, 1};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t most = !is_grid ? kMaxThreads : i == 0 ? kMaxExtent : 65535;
      values[i] = in_range(fmt::format("{}[{}]", what, i), list[i], 1, most);
    }
    return values;
  }

  std::int64_t in_range(const std::string& what, const expr::Formula& value, std::int64_t least,
                        std::int64_t most) const {
    const std::int64_t number = value.evaluate_integer(names_);
    if (number < least || number > most) {
      throw GraphError(fmt::format("contract {}: {} = {} is {}, the {} is {}", contract_.name, what,
                                   value.expr().text(), number, number < least ? "least" : "most",
                                   number < least ? least : most));
    }
    return number;
  }

  const TemplateContract& contract_;
  Names names_;
  std::int64_t most_shared_bytes_ = 0;  // of a block on the device, where it is known
};

}  // namespace

kernel::KernelConfig default_config(const TemplateContract& contract) {
  kernel::KernelConfig config;
  for (const kernel::ConfigParameter& parameter : contract.params) {
    config.emplace(parameter.name, parameter.default_value);
  }
  return config;
}

const Constraint* violated_constraint(const TemplateContract& contract,
                                      const ContractScope& scope) {
  const Names names(contract, scope);
  for (const Constraint& constraint : contract.constraints) {
    if (!constraint.condition.evaluate_truth(names)) {
      return &constraint;
    }
  }
  return nullptr;
}

bool is_allowed(const TemplateContract& contract, const ContractScope& scope) {
  const Names names(contract, scope);
  return std::all_of(
      contract.restrictions.begin(), contract.restrictions.end(),
      [&](const Constraint& restriction) { return restriction.condition.evaluate_truth(names); });
}

std::vector<kernel::KernelConfig> allowed_configs(const TemplateContract& contract,
                                                  ContractScope scope) {
  // A restriction leaves out settings as soon as they have all parameters that it reads: one for
  // every choice of all of them would be far more.
  std::vector<const Constraint*> left;
  for (const Constraint& restriction : contract.restrictions) {
    left.push_back(&restriction);
  }
  std::vector<kernel::KernelConfig> configs{{}};
  for (auto parameter = contract.params.begin(); parameter != contract.params.end(); ++parameter) {
    const auto reads_later_ones = [&](const Constraint* restriction) {
      return std::any_of(parameter + 1, contract.params.end(), [&](const auto& later) {
        return expr::uses(restriction->condition.expr(), "param." + later.name);
      });
    };
    const auto ready = std::stable_partition(left.begin(), left.end(), reads_later_ones);
    std::vector<kernel::KernelConfig> longer;
    for (const kernel::KernelConfig& config : configs) {
      for (const std::int64_t value : parameter->values) {
        scope.config = config;
        scope.config.emplace(parameter->name, value);
        const Names names(contract, scope);
        if (std::all_of(ready, left.end(), [&](const Constraint* restriction) {
              return restriction->condition.evaluate_truth(names);
            })) {
          longer.push_back(scope.config);
        }
      }
    }
    left.erase(ready, left.end());
    configs = std::move(longer);
  }
  if (!left.empty() && !is_allowed(contract, scope)) {
    configs.clear();  // without parameters
  }
  return configs;
}

LaunchGeometry evaluate_launch(const TemplateContract& contract, const ContractScope& scope) {
  return LaunchEvaluator(contract, scope).evaluate();
}

ResourceEstimate evaluate_resources(const TemplateContract& contract, const ContractScope& scope) {
  const Names names(contract, scope);
  const auto amount = [&](const expr::Formula& formula) {
    return std::max<std::int64_t>(formula.evaluate_integer(names), 0);
  };
  return {.threads = amount(contract.resources.threads),
          .shared_bytes = amount(contract.resources.shared_bytes),
          .registers = amount(contract.resources.registers)};
}

WorkEstimate evaluate_cost(const TemplateContract& contract, const ContractScope& scope) {
  const Names names(contract, scope);
  const auto amount = [&](const expr::Formula& formula) {
    return static_cast<double>(std::max<std::int64_t>(formula.evaluate_integer(names), 0));
  };
  return {.flops = amount(contract.cost.flops), .bytes = amount(contract.cost.bytes)};
}

std::vector<expr::Value> scalar_arguments(const TemplateContract& contract,
                                          const ContractScope& scope) {
  const Names names(contract, scope);
  std::vector<expr::Value> arguments;
  for (const Argument& argument : contract.launch.arguments) {
    if (argument.kind == ArgumentKind::Scalar) {
      arguments.push_back(argument.value.evaluate(names));
    }
  }
  return arguments;
}

std::vector<std::int64_t> argument_bytes(const TemplateContract& contract,
                                         const ContractScope& scope) {
  const std::vector<expr::Value> scalars = scalar_arguments(contract, scope);
  auto scalar = scalars.begin();
  std::vector<std::int64_t> bytes;
  for (const Argument& argument : contract.launch.arguments) {
    if (argument.kind == ArgumentKind::TensorMap) {
      bytes.push_back(128);
    } else if (argument.kind != ArgumentKind::Scalar) {
      bytes.push_back(8);
    } else {
      const expr::Value& value = *scalar++;
      bytes.push_back(std::holds_alternative<bool>(value)                               ? 1
                      : argument.is_wide && std::holds_alternative<std::int64_t>(value) ? 8
                                                                                        : 4);
    }
  }
  return bytes;
}

std::vector<std::string> argument_texts(const TemplateContract& contract) {
  std::vector<std::string> texts;
  for (const Argument& argument : contract.launch.arguments) {
    texts.push_back(argument.kind == ArgumentKind::Scalar      ? argument.value.expr().text()
                    : argument.kind == ArgumentKind::Mask      ? "mask." + argument.name
                    : argument.kind == ArgumentKind::Workspace ? "workspace"
                                                               : argument.name);
  }
  return texts;
}

bool lies_transposed(const Port& port, const ContractScope& scope) {
  const auto stride = [&](std::size_t axis) {
    const auto found = scope.strides.find(port.name + "." + port.shape[axis].dim);
    return found == scope.strides.end() ? 0 : found->second;
  };
  const std::size_t rank = port.shape.size();
  return rank > 1 && stride(rank - 1) != 1 && stride(rank - 2) == 1;
}

std::optional<std::string> launch_fault(const TemplateContract& contract,
                                        const ContractScope& scope) {
  try {
    evaluate_launch(contract, scope);
    tensor_map_boxes(contract, scope);
  } catch (const GraphError& error) {
    return error.what();
  }
  return std::nullopt;
}

std::optional<std::string> argument_fault(const TemplateContract& contract,
                                          const ContractScope& scope) {
  using Limits = std::numeric_limits<std::int32_t>;
  const Names names(contract, scope);
  for (std::size_t i = 0; i < contract.launch.arguments.size(); ++i) {
    const Argument& argument = contract.launch.arguments[i];
    // Names alone are not looked at, for this is asked of every launch that is thought of.
    if (argument.kind != ArgumentKind::Scalar || argument.is_wide ||
        argument.value.expr().type() != ScalarType::Int ||
        argument.value.expr().node().operands.empty()) {
      continue;
    }
    const std::int64_t value = argument.value.evaluate_integer(names);
    if (value < Limits::min() || value > Limits::max()) {
      return fmt::format("launch.arguments.{} is {}, from {} to {}", i, value, Limits::min(),
                         Limits::max());
    }
  }
  return std::nullopt;
}

std::vector<std::vector<std::int64_t>> tensor_map_boxes(const TemplateContract& contract,
                                                        const ContractScope& scope) {
  const Names names(contract, scope);
  std::vector<std::vector<std::int64_t>> boxes;
  for (const Argument& argument : contract.launch.arguments) {
    if (argument.kind != ArgumentKind::TensorMap) {
      continue;
    }
    std::vector<std::int64_t>& box = boxes.emplace_back();
    for (const expr::Formula& extent : argument.box) {
      box.push_back(extent.evaluate_integer(names));
      if (box.back() < 1 || box.back() > kMaxBoxExtent) {
        throw GraphError(fmt::format("contract {}: an extent of a box of {} is {}, from 1 to {}",
                                     contract.name, argument.name, box.back(), kMaxBoxExtent));
      }
    }
    const Port& port = *contract.find_port(argument.name);
    const std::int64_t row = lies_transposed(port, scope) ? box[box.size() - 2] : box.back();
    const std::int64_t row_bytes = row * element_bytes(port, scope);
    if (row_bytes != kBoxRowBytes) {
      throw GraphError(fmt::format("contract {}: a box of {} has rows of {} bytes, not of {}",
                                   contract.name, argument.name, row_bytes, kBoxRowBytes));
    }
  }
  return boxes;
}

}  // namespace stof::contract
