#include "fusion/choose.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Predictions that differ by less say nothing; those of attention are the less certain ones.
constexpr double kTie = 0.02;
constexpr double kAttentionTie = 0.08;
constexpr std::size_t kShownSettings = 2;  // of each template

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

bool is_allowed(const contract::TemplateContract& contract, contract::ContractScope& scope,
                const KernelConfig& config) {
  scope.config = config;
  return contract::is_allowed(contract, scope);
}

// The default, else the allowed setting nearest to it.
std::optional<KernelConfig> plain_config(const contract::TemplateContract& contract,
                                         contract::ContractScope& scope) {
  KernelConfig config = contract::default_config(contract);
  if (is_allowed(contract, scope, config)) {
    return config;
  }
  const auto configs = contract::allowed_configs(contract, scope);
  const auto nearest = std::min_element(
      configs.begin(), configs.end(),
      [&](const auto& a, const auto& b) { return distance(contract, a) < distance(contract, b); });
  return nearest == configs.end() ? std::nullopt : std::optional(*nearest);
}

double bytes_of(const View& view) {
  double bytes = size_bytes(view.dtype);
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    bytes *= view.strides[axis] == 0 ? 1 : static_cast<double>(view.extents[axis]);
  }
  return bytes;
}

double bytes_of_ports(const Use& use) {
  double bytes = 0;
  for (const auto& [name, view] : use.ports) {
    bytes += bytes_of(view);
  }
  return bytes;
}

cost::Epilogue epilogue_of(const Use& use, const Chain& chain, const graph::Ir& ir) {
  using graph::OpKind;
  constexpr std::array kTranscendental = {OpKind::Gelu, OpKind::GeluTanh, OpKind::Silu,
                                          OpKind::Tanh, OpKind::Sigmoid,  OpKind::Exp};
  cost::Epilogue epilogue;
  for (const Statement& statement : chain.statements) {
    const OpKind kind = ir.operators[static_cast<std::size_t>(statement.op)].kind;
    epilogue.transcendentals +=
        static_cast<int>(std::count(kTranscendental.begin(), kTranscendental.end(), kind));
  }
  for (const HookTensor& tensor : use.hook) {
    epilogue.bytes += bytes_of(tensor.view);
  }
  return epilogue;
}

// Every field of the scope that a choice may depend on, and no pointer.
void add_text(std::string& text, const contract::ContractScope& scope) {
  const auto out = std::back_inserter(text);
  for (const auto* numbers : {&scope.dims, &scope.strides, &scope.alignments}) {
    for (const auto& [name, value] : *numbers) {
      fmt::format_to(out, "{} {} ", name, value);
    }
  }
  for (const auto& [name, value] : scope.attributes) {
    fmt::format_to(out, "{} {} ", name, value);
  }
  for (const auto& [symbol, dtype] : scope.dtypes) {
    fmt::format_to(out, "{} {} ", symbol, static_cast<int>(dtype));
  }
  fmt::format_to(out, "{} {}\n", scope.mask_batch, scope.mask_heads);
}

std::string problem_text(const std::vector<Use>& uses, const cost::Epilogue& epilogue,
                         const AttentionMask* mask) {
  std::string text = fmt::format("{} {} {}", epilogue.transcendentals, epilogue.bytes,
                                 mask != nullptr && mask->modifier.has_score());
  for (const Use& use : uses) {
    text += "\n" + use.kernel->file + " ";
    add_text(text, use.scope);
  }
  return text;
}

}  // namespace

std::string Option::text() const {
  std::string text = kernel;
  for (const auto& [name, value] : config) {
    text += fmt::format(", {} {}", name, value);
  }
  return text + ": " + time.text();
}

bool reads_key_rows(const Use& use) {
  return use.kernel->contract.takes_mask_array("key_col");
}

const Choice* Chooser::choose(const std::vector<Use>& uses, const Chain& chain, const graph::Ir& ir,
                              const AttentionMask* mask) {
  if (uses.empty()) {
    return nullptr;
  }
  const cost::Epilogue epilogue = epilogue_of(uses.front(), chain, ir);
  const auto key =
      std::pair(mask == nullptr ? nullptr : mask->arrays, problem_text(uses, epilogue, mask));
  if (const auto known = known_.find(key); known != known_.end()) {
    return &known->second;
  }
  std::vector<std::pair<std::size_t, Option>> all;
  for (std::size_t use = 0; use < uses.size(); ++use) {
    for (Option& option : options(uses[use], epilogue, mask)) {
      all.emplace_back(use, std::move(option));
    }
  }
  if (all.empty()) {
    return nullptr;
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return is_faster(a.second.time, b.second.time);
  });
  const double limit =
      all.front().second.time.total_us() * (1 + (mask == nullptr ? kTie : kAttentionTie));
  const auto is_better = [&](const auto& a, const auto& b) {
    if (mask != nullptr) {
      return std::tie(a.first, a.second.place) < std::tie(b.first, b.second.place);
    }
    return uses[a.first].kernel->contract.constraints.size() >
           uses[b.first].kernel->contract.constraints.size();
  };
  auto best = all.begin();
  for (auto other = all.begin(); other != all.end(); ++other) {
    if (other->second.time.total_us() <= limit && is_better(*other, *best)) {
      best = other;
    }
  }
  std::rotate(all.begin(), best, best + 1);
  Choice choice{.use = all.front().first, .config = all.front().second.config, .options = {}};
  for (auto& [use, option] : all) {
    choice.options.push_back(std::move(option));
  }
  return &known_.emplace(key, std::move(choice)).first->second;
}

// The fastest few that are allowed.
std::vector<Option> Chooser::options(const Use& use, const cost::Epilogue& epilogue,
                                     const AttentionMask* mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  const cost::Problem problem =
      cost::make_problem(contract, use.scope, epilogue, bytes_of_ports(use));
  std::vector<Option> options;
  for (KernelConfig& config : model_.settings(problem)) {
    const cost::Prediction time = predict(problem, config, mask);
    options.push_back({.kernel = contract.name,
                       .config = std::move(config),
                       .time = time,
                       .place = options.size()});
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const Option& a, const Option& b) { return is_faster(a.time, b.time); });
  contract::ContractScope scope = use.scope;
  std::vector<Option> allowed;
  for (Option& option : options) {
    if (allowed.size() < kShownSettings && is_allowed(contract, scope, option.config)) {
      allowed.push_back(std::move(option));
    }
  }
  if (allowed.empty()) {
    if (const auto config = plain_config(contract, scope)) {
      allowed.push_back(
          {.kernel = contract.name, .config = *config, .time = predict(problem, *config, mask)});
    }
  }
  return allowed;
}

cost::Prediction Chooser::predict(const cost::Problem& problem, const KernelConfig& config,
                                  const AttentionMask* mask) {
  if (mask == nullptr) {
    return model_.predict(problem, config);
  }
  cost::AttentionWork work{
      .features = &mask->features(), .tiles = nullptr, .has_score = mask->modifier.has_score()};
  if (!problem.contract->takes_mask_array("key_col")) {
    const auto tile_q = config.find("tile_q");
    work.tiles = &tile_work(*mask, tile_q == config.end() ? mask::kTile : tile_q->second);
  }
  return model_.predict(problem, config, &work);
}

const cost::TileWork& Chooser::tile_work(const AttentionMask& mask, std::int64_t tile_q) {
  const auto key = std::pair(mask.arrays, tile_q);
  const auto found = tile_work_.find(key);
  if (found != tile_work_.end()) {
    return found->second;
  }
  return tile_work_.emplace(key, cost::tile_work(mask.arrays->tiles(tile_q))).first->second;
}

}  // namespace stof::fusion
