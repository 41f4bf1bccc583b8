#include "fusion/settings.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

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

// Whether there is one of its values for each parameter, and nothing else.
bool has_parameters(const contract::TemplateContract& contract, const KernelConfig& config) {
  return has_names(contract, config) &&
         std::all_of(contract.params.begin(), contract.params.end(), [&](const auto& parameter) {
           return std::find(parameter.values.begin(), parameter.values.end(),
                            config.at(parameter.name)) != parameter.values.end();
         });
}

}  // namespace

bool has_names(const contract::TemplateContract& contract, const KernelConfig& config) {
  return config.size() == contract.params.size() &&
         std::all_of(contract.params.begin(), contract.params.end(),
                     [&](const auto& parameter) { return config.contains(parameter.name); });
}

bool is_allowed(const contract::TemplateContract& contract, contract::ContractScope& scope,
                const KernelConfig& config) {
  scope.config = config;
  return contract::is_allowed(contract, scope) && !contract::launch_fault(contract, scope);
}

bool is_setting(const Use& use, const KernelConfig& config) {
  contract::ContractScope scope = use.scope;
  return has_parameters(use.kernel->contract, config) &&
         is_allowed(use.kernel->contract, scope, config);
}

std::vector<KernelConfig> nearest_first(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  std::vector<KernelConfig> configs = contract::allowed_configs(contract, use.scope);
  std::stable_sort(configs.begin(), configs.end(), [&](const auto& a, const auto& b) {
    return distance(contract, a) < distance(contract, b);
  });
  return configs;
}

std::optional<KernelConfig> plain_config(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  contract::ContractScope scope = use.scope;
  KernelConfig config = contract::default_config(contract);
  if (is_allowed(contract, scope, config)) {
    return config;
  }
  const std::vector<KernelConfig> configs = nearest_first(use);
  const auto nearest = std::find_if(configs.begin(), configs.end(), [&](const auto& one) {
    return is_allowed(contract, scope, one);
  });
  return nearest == configs.end() ? std::nullopt : std::optional(*nearest);
}

}  // namespace stof::fusion
