#include "fusion/choose.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "base/check.hpp"

namespace stof::fusion {

namespace {

// Below this, lists of keys are less work than tiles.
constexpr double kKeysPerTile = 64;

bool reads_key_lists(const Use& use) {
  const auto& arguments = use.kernel->contract.launch.arguments;
  return std::any_of(arguments.begin(), arguments.end(), [](const contract::Argument& argument) {
    return argument.kind == contract::ArgumentKind::Mask && argument.name == "key_col";
  });
}

// Templates that are for fewer cases come first: they are faster there.
int preference(const Use& use) {
  constexpr std::array<std::string_view, 4> kLastToFirst = {"gemm_simple", "gemm_sm80",
                                                            "vector_columns", "vector_rows"};
  const auto found = std::find(kLastToFirst.begin(), kLastToFirst.end(), use.kernel->contract.name);
  return static_cast<int>(found - kLastToFirst.begin());
}

}  // namespace

std::size_t choose_use(const std::vector<Use>& uses, const AttentionMask* mask) {
  STOF_CHECK(!uses.empty()) << "nothing to choose from";
  const bool wants_lists =
      mask != nullptr && mask->has_key_rows() && mask->keys_per_tile() < kKeysPerTile;
  const auto rank = [&](const Use& use) {
    return mask != nullptr ? static_cast<int>(reads_key_lists(use) == wants_lists)
                           : preference(use);
  };
  const auto best = std::max_element(uses.begin(), uses.end(),
                                     [&](const Use& a, const Use& b) { return rank(a) < rank(b); });
  return static_cast<std::size_t>(best - uses.begin());
}

std::optional<kernel::KernelConfig> choose_config(const Use& use) {
  const contract::TemplateContract& contract = use.kernel->contract;
  contract::ContractScope scope = use.scope;
  scope.config = contract::default_config(contract);
  if (contract::is_allowed(contract, scope)) {
    return scope.config;
  }
  const auto configs = contract::allowed_configs(contract, scope);
  return configs.empty() ? std::nullopt : std::optional(configs.front());
}

}  // namespace stof::fusion
