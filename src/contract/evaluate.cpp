#include "contract/evaluate.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "contract/scalars.hpp"
#include "expr/evaluate.hpp"
#include "stof/error.hpp"

namespace stof::contract {

namespace {

constexpr std::int64_t kMaxExtent =
    0x7fffffff;                              // of a grid; CUDA's own limits on y and z are 65535
constexpr std::int64_t kMaxThreads = 1024;   // of a block
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

expr::Bindings bindings(const TemplateContract& contract, const ContractScope& scope) {
  expr::Bindings values;
  for (const auto& [name, value] : scope.dims) {
    values.emplace("dim." + name, value);
  }
  for (const auto& [name, value] : scope.alignments) {
    values.emplace("alignment." + name, value);
  }
  values.emplace("mask.batch", scope.mask_batch);
  values.emplace("mask.heads", scope.mask_heads);
  values.emplace("mask.long_tiles", scope.mask_long_tiles);
  values.emplace("mask.parts", scope.mask_parts);
  values.emplace("mask.band_first", scope.mask_band_first);
  values.emplace("mask.band_end", scope.mask_band_end);
  for (const auto& [name, value] : scope.strides) {
    values.emplace("stride." + name, value);
  }
  for (const auto& [name, value] : scope.config) {
    values.emplace("param." + name, value);
  }
  for (const auto& [symbol, dtype] : scope.dtypes) {
    values.emplace("size." + symbol, std::int64_t{size_bytes(dtype)});
  }
  for (const auto& [name, value] : scope.device) {
    values.emplace(name, value);
  }
  for (const PatternStep& step : contract.pattern) {
    for (const PatternAttribute& attribute : step.attributes) {
      const auto found = scope.attributes.find(attribute.name);
      if (!attribute.value && found != scope.attributes.end()) {
        values.emplace("attr." + attribute.name, attribute_value(attribute, found->second));
      }
    }
  }
  return values;
}

int element_bytes(const Port& port, const ContractScope& scope) {
  const auto symbol = scope.dtypes.find(port.dtype);
  return size_bytes(symbol != scope.dtypes.end() ? symbol->second : *dtype_from_name(port.dtype));
}

class LaunchEvaluator {
 public:
  LaunchEvaluator(const TemplateContract& contract, const ContractScope& scope)
      : contract_(contract), bindings_(bindings(contract, scope)) {
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
    geometry.workspace_bytes = in_range("workspace", contract_.workspace.bytes, 0, INT64_MAX);
    const std::int64_t threads = geometry.block[0] * geometry.block[1] * geometry.block[2];
    if (threads > kMaxThreads) {
      throw GraphError(fmt::format(
          "contract {}: a block of {} x {} x {} has {} threads, the most is {}", contract_.name,
          geometry.block[0], geometry.block[1], geometry.block[2], threads, kMaxThreads));
    }
    return geometry;
  }

 private:
  std::array<std::int64_t, 3> extents(const char* what, const std::vector<Expr>& list) const {
    const bool is_grid = &list == &contract_.launch.grid;
    std::array<std::int64_t, 3> values{1, 1, 1};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t most = !is_grid ? kMaxThreads : i == 0 ? kMaxExtent : 65535;
      values[i] = in_range(fmt::format("{}[{}]", what, i), list[i], 1, most);
    }
    return values;
  }

  std::int64_t in_range(const std::string& what, const Expr& value, std::int64_t least,
                        std::int64_t most) const {
    const std::int64_t number = expr::evaluate_integer(value, bindings_);
    if (number < least || number > most) {
      throw GraphError(fmt::format("contract {}: {} = {} is {}, the {} is {}", contract_.name, what,
                                   value.text(), number, number < least ? "least" : "most",
                                   number < least ? least : most));
    }
    return number;
  }

  const TemplateContract& contract_;
  expr::Bindings bindings_;
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

std::optional<std::string> violated_constraint(const TemplateContract& contract,
                                               const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  for (const Constraint& constraint : contract.constraints) {
    if (!expr::evaluate_truth(constraint.condition, values)) {
      return constraint.text;
    }
  }
  return std::nullopt;
}

bool is_allowed(const TemplateContract& contract, const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  return std::all_of(contract.restrictions.begin(), contract.restrictions.end(),
                     [&](const Constraint& restriction) {
                       return expr::evaluate_truth(restriction.condition, values);
                     });
}

std::vector<kernel::KernelConfig> allowed_configs(const TemplateContract& contract,
                                                  ContractScope scope) {
  std::vector<kernel::KernelConfig> configs{{}};
  for (const kernel::ConfigParameter& parameter : contract.params) {
    std::vector<kernel::KernelConfig> longer;
    longer.reserve(configs.size() * parameter.values.size());
    for (const kernel::KernelConfig& config : configs) {
      for (const std::int64_t value : parameter.values) {
        longer.push_back(config);
        longer.back().emplace(parameter.name, value);
      }
    }
    configs = std::move(longer);
  }
  std::erase_if(configs, [&](const kernel::KernelConfig& config) {
    scope.config = config;
    return !is_allowed(contract, scope);
  });
  return configs;
}

LaunchGeometry evaluate_launch(const TemplateContract& contract, const ContractScope& scope) {
  return LaunchEvaluator(contract, scope).evaluate();
}

ResourceEstimate evaluate_resources(const TemplateContract& contract, const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  return {.threads = expr::evaluate_integer(contract.resources.threads, values),
          .shared_bytes = expr::evaluate_integer(contract.resources.shared_bytes, values),
          .registers = expr::evaluate_integer(contract.resources.registers, values)};
}

WorkEstimate evaluate_cost(const TemplateContract& contract, const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  return {.flops = static_cast<double>(expr::evaluate_integer(contract.cost.flops, values)),
          .bytes = static_cast<double>(expr::evaluate_integer(contract.cost.bytes, values))};
}

std::vector<expr::Value> scalar_arguments(const TemplateContract& contract,
                                          const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  std::vector<expr::Value> arguments;
  for (const Argument& argument : contract.launch.arguments) {
    if (argument.kind == ArgumentKind::Scalar) {
      arguments.push_back(expr::evaluate(argument.value, values));
    }
  }
  return arguments;
}

bool lies_transposed(const Port& port, const ContractScope& scope) {
  const auto stride = [&](std::size_t axis) {
    const auto found = scope.strides.find(port.name + "." + port.shape[axis].dim);
    return found == scope.strides.end() ? 0 : found->second;
  };
  const std::size_t rank = port.shape.size();
  return rank > 1 && stride(rank - 1) != 1 && stride(rank - 2) == 1;
}

std::vector<std::vector<std::int64_t>> tensor_map_boxes(const TemplateContract& contract,
                                                        const ContractScope& scope) {
  const expr::Bindings values = bindings(contract, scope);
  std::vector<std::vector<std::int64_t>> boxes;
  for (const Argument& argument : contract.launch.arguments) {
    if (argument.kind != ArgumentKind::TensorMap) {
      continue;
    }
    std::vector<std::int64_t>& box = boxes.emplace_back();
    for (const Expr& extent : argument.box) {
      box.push_back(expr::evaluate_integer(extent, values));
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
