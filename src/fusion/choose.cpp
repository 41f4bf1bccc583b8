#include "fusion/choose.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fusion/attention_rules.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/settings.hpp"

namespace stof::fusion {

namespace {

using kernel::KernelConfig;

// Predictions that differ by less say nothing.
constexpr double kTie = 0.02;
constexpr std::size_t kShownSettings = 2;  // of each template

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
  if (mask != nullptr) {
    const mask::MaskFeatures& features = mask->features();
    text += fmt::format(" {} {} {} {} {} {}", static_cast<int>(features.mask_class),
                        features.full_tiles, features.part_tiles, features.mean_keys,
                        features.max_keys, mask->modifier.arguments().empty());
    text += fmt::format(" {} {}", mask->modifier.reads_captures(),
                        mask->run_time ? mask->run_time->readers : 0);
  }
  for (const Use& use : uses) {
    text += "\n" + use.kernel->file + " ";
    add_text(text, use.scope);
  }
  return text;
}

// Query rows of a tile.
std::int64_t tile_rows(const KernelConfig& config) {
  const auto parameter = config.find("tile_q");
  return parameter == config.end() ? mask::kTile : parameter->second;
}

std::int64_t planes_of(const mask::MaskFeatures& features) {
  return features.mask_batch * features.mask_heads;
}

// Packed tiles are then plain ones with longer lists.
bool packs_nothing(const AttentionMask& mask) {
  return cost::packs_nothing(cost::tile_work(mask.arrays->packed_tiles(mask::kTile).lists),
                             cost::tile_work(mask.arrays->tiles(mask::kTile)));
}

bool holds(std::span<const Option> options, const std::string& kernel, const KernelConfig& config) {
  return std::any_of(options.begin(), options.end(), [&](const Option& option) {
    return option.kernel == kernel && option.config == config;
  });
}

using Options = std::vector<std::pair<std::size_t, Option>>;  // with the use that each is of

// Of those that are as fast as the first one, the one to take: of products that which is for fewer
// problems; of attentions, if the first packs tiles in vain, the same tiles as they are, however
// fast, or else others.
Options::iterator preferred(Options& all, const std::vector<Use>& uses, const AttentionMask* mask) {
  const auto contract_of = [&](const auto& one) -> const contract::TemplateContract& {
    return uses[one.first].kernel->contract;
  };
  const double limit = all.front().second.time.total_us() * (1 + kTie);
  const auto is_as_fast = [&](const auto& one) { return one.second.time.total_us() <= limit; };
  auto best = all.begin();
  if (mask == nullptr) {
    for (auto other = all.begin(); other != all.end(); ++other) {
      if (is_as_fast(*other) &&
          contract_of(*other).constraints.size() > contract_of(*best).constraints.size()) {
        best = other;
      }
    }
    return best;
  }
  if (!packs(contract_of(*best))) {
    return best;
  }
  const auto is_plain = [&](const auto& one) {
    return !packs(contract_of(one)) && !reads_key_rows(contract_of(one));
  };
  auto plain = std::find_if(all.begin(), all.end(), [&](const auto& one) {
    return is_plain(one) && one.second.config == best->second.config;
  });
  if (plain == all.end()) {
    plain = std::find_if(all.begin(), all.end(),
                         [&](const auto& one) { return is_plain(one) && is_as_fast(one); });
  }
  return plain != all.end() && packs_nothing(*mask) ? plain : best;
}

}  // namespace

std::string Option::text() const {
  std::string text = kernel;
  for (const auto& [name, value] : config) {
    text += fmt::format(", {} {}", name, value);
  }
  return text + ": " + time.text();
}

const Choice* Chooser::choose(const std::vector<Use>& uses, const Chain& chain, const graph::Ir& ir,
                              const AttentionMask* mask) {
  if (uses.empty()) {
    return nullptr;
  }
  const cost::Epilogue epilogue = epilogue_of(uses.front(), chain, ir);
  const auto key =
      std::pair(mask == nullptr ? nullptr : mask->known(), problem_text(uses, epilogue, mask));
  if (const auto known = known_.find(key); known != known_.end()) {
    return &known->second;
  }
  Options all;
  const auto add_options = [&](bool also_out_of_place) {
    for (std::size_t use = 0; use < uses.size(); ++use) {
      if (!also_out_of_place && mask != nullptr && !is_in_place(uses[use], uses, *mask)) {
        continue;
      }
      for (Option& option : options(uses[use], epilogue, mask)) {
        all.emplace_back(use, std::move(option));
      }
    }
  };
  add_options(false);
  if (all.empty()) {  // better a slow one than none
    add_options(true);
  }
  if (all.empty()) {
    return nullptr;
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return is_faster(a.second.time, b.second.time);
  });
  const auto best = preferred(all, uses, mask);
  std::rotate(all.begin(), best, best + 1);
  Choice choice{.use = all.front().first,
                .config = all.front().second.config,
                .long_tiles = {},
                .sections = {},
                .options = {}};
  if (mask != nullptr) {
    add_order(choice, uses[choice.use], *mask);
  }
  for (auto& [use, option] : all) {  // operands that may change places give a use each
    if (!holds(choice.options, option.kernel, option.config)) {
      choice.options.push_back(std::move(option));
    }
  }
  if (lists_all_) {
    list_all(choice, uses, epilogue, mask);
  }
  return &known_.emplace(key, std::move(choice)).first->second;
}

Choice Chooser::forced(const Setting& setting, const Choice& choice, const std::vector<Use>& uses,
                       const Chain& chain, const graph::Ir& ir, const AttentionMask* mask,
                       std::string& refusal) {
  const auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& one) {
    return one.kernel->contract.name == setting.kernel;
  });
  if (use == uses.end()) {
    refusal = setting.kernel + " does not take the problem";
    return choice;
  }
  if (!is_setting(*use, setting.config)) {
    refusal =
        fmt::format("{} does not allow {}", setting.kernel, nlohmann::json(setting.config).dump());
    return choice;
  }
  const contract::TemplateContract& contract = use->kernel->contract;
  const cost::Problem problem =
      cost::make_problem(contract, use->scope, epilogue_of(*use, chain, ir), bytes_of_ports(*use));
  Choice result{.use = static_cast<std::size_t>(use - uses.begin()),
                .config = setting.config,
                .long_tiles = {},
                .sections = {},
                .options = {{.kernel = setting.kernel,
                             .config = setting.config,
                             .time = predict(problem, setting.config, mask)}}};
  if (mask != nullptr) {
    add_order(result, *use, *mask);
  }
  std::copy_if(choice.options.begin(), choice.options.end(), std::back_inserter(result.options),
               [&](const Option& option) {
                 return option.kernel != setting.kernel || option.config != setting.config;
               });
  return result;
}

void Chooser::list_all(Choice& choice, const std::vector<Use>& uses, const cost::Epilogue& epilogue,
                       const AttentionMask* mask) {
  std::vector<Option>& listed = choice.options;
  const std::size_t known = listed.size();  // those behind it are distinct, of one use
  for (const Use& use : uses) {
    const contract::TemplateContract& contract = use.kernel->contract;
    const cost::Problem problem =
        cost::make_problem(contract, use.scope, epilogue, bytes_of_ports(use));
    // The model says nothing of some parameters.
    const std::vector<KernelConfig> configs = nearest_first(use);
    const bool is_first = std::none_of(
        uses.data(), &use, [&](const Use& other) { return other.kernel == use.kernel; });
    for (const KernelConfig& config : configs) {
      const std::span<const Option> others(listed.data(), is_first ? known : listed.size());
      if (!holds(others, contract.name, config)) {
        listed.push_back(
            {.kernel = contract.name, .config = config, .time = predict(problem, config, mask)});
      }
    }
  }
  std::stable_sort(listed.begin() + 1, listed.end(),
                   [](const Option& a, const Option& b) { return is_faster(a.time, b.time); });
  if (listed.size() > kMostListed) {
    listed.erase(listed.begin() + kMostListed, listed.end());
  }
}

// The fastest few that are allowed.
std::vector<Option> Chooser::options(const Use& use, const cost::Epilogue& epilogue,
                                     const AttentionMask* mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  const cost::Problem problem =
      cost::make_problem(contract, use.scope, epilogue, bytes_of_ports(use));
  std::vector<KernelConfig> settings = model_.settings(problem);
  if (mask != nullptr) {
    settings = settings_by_rules(use, *mask, std::move(settings));
  }
  std::vector<Option> options;
  for (KernelConfig& config : settings) {
    const cost::Prediction time = predict(problem, config, mask);
    options.push_back({.kernel = contract.name, .config = std::move(config), .time = time});
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
    if (const auto config = plain_config(use)) {
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
  cost::AttentionWork work{.features = &mask->features(),
                           .tiles = nullptr,
                           .long_tiles = {},
                           .windows = {},
                           .has_score = mask->modifier.has_score(),
                           .reads_captures = mask->modifier.reads_captures()};
  if (problem.contract->takes_mask_array("window_col")) {
    work.windows = mask->arrays->window_counts();
  } else if (!problem.contract->takes_mask_array("key_col")) {
    work.tiles = &tile_work(*problem.contract, config, *mask);
    work.long_tiles = long_tiles(*problem.contract, *problem.scope, config, *mask);
  }
  cost::Prediction time = model_.predict(problem, config, &work);
  if (mask->run_time) {
    const cost::LayoutContent content =
        reads_key_rows(*problem.contract)    ? cost::LayoutContent::Keys
        : takes_intervals(*problem.contract) ? cost::LayoutContent::Runs
                                             : cost::LayoutContent::Tiles;
    time.layout_us =
        cost::layout_us(mask->features(), content) / static_cast<double>(mask->run_time->readers);
  }
  return time;
}

void Chooser::add_order(Choice& choice, const Use& use, const AttentionMask& mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  const bool has_tiles = cost::takes_long_tiles(contract);
  choice.long_tiles = long_tiles(contract, use.scope, choice.config, mask);
  if (!contract.reads("mask.section")) {
    return;
  }
  choice.sections = cost::sections(
      {.contract = &contract, .scope = &use.scope, .work = {}, .epilogue = {}}, choice.config,
      has_tiles ? &tile_work(contract, choice.config, mask) : nullptr, choice.long_tiles);
}

cost::LongTiles Chooser::long_tiles(const contract::TemplateContract& contract,
                                    const contract::ContractScope& scope,
                                    const KernelConfig& config, const AttentionMask& mask) {
  if (!cost::takes_long_tiles(contract)) {
    return {};
  }
  return cost::long_tiles({.contract = &contract, .scope = &scope, .work = {}, .epilogue = {}},
                          config, tile_work(contract, config, mask));
}

const cost::TileWork& Chooser::tile_work(const contract::TemplateContract& contract,
                                         const KernelConfig& config, const AttentionMask& mask) {
  const std::int64_t tile_q = tile_rows(config);
  const bool is_packed = packs(contract);
  const auto& known = mask.known();
  const std::int64_t planes = planes_of(mask.features());  // each like the sample's
  const auto key = std::tuple(known, planes, tile_q, is_packed);
  const auto found = tile_work_.find(key);
  if (found != tile_work_.end()) {
    return found->second;
  }
  cost::TileWork work = is_packed ? cost::tile_work(known->packed_tiles(tile_q).lists)
                                  : cost::tile_work(known->tiles(tile_q));
  // As many in all as there are, however those of the sample's planes are rounded.
  const std::int64_t known_planes = planes_of(known->features());
  std::int64_t before = 0;
  for (cost::TileGroup& group : work.groups) {
    const std::int64_t end = before + group.count;
    group.count = end * planes / known_planes - before * planes / known_planes;
    before = end;
  }
  return tile_work_.emplace(key, std::move(work)).first->second;
}

}  // namespace stof::fusion
