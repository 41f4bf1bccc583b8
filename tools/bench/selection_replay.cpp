#include "selection_replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/parallel.hpp"
#include "fusion/attention_use.hpp"
#include "mask/bits.hpp"
#include "tune/fit_positive.hpp"

namespace stof::bench {

using nlohmann::json;

namespace {

template <typename Coefficients>
struct Named {
  const char* name;
  double Coefficients::*member;
};

using Tiled = cost::TiledAttention;
using Gathered = cost::GatheredAttention;
using Staged = cost::StagedAttention;

constexpr auto kTiled = std::to_array<Named<Tiled>>({
    {"start_us", &Tiled::start_us},
    {"cold_us", &Tiled::cold_us},
    {"dram_share", &Tiled::dram_share},
    {"l2_share", &Tiled::l2_share},
    {"tile_wait_ns", &Tiled::tile_wait_ns},
    {"query_wait_ns", &Tiled::query_wait_ns},
    {"exchange_wait_ns", &Tiled::exchange_wait_ns},
    {"step_wait_ns", &Tiled::step_wait_ns},
    {"keys_wait_ns", &Tiled::keys_wait_ns},
    {"tall_wait_ns", &Tiled::tall_wait_ns},
    {"interval_wait_ns", &Tiled::interval_wait_ns},
    {"bitmap_wait_ns", &Tiled::bitmap_wait_ns},
    {"tile_ns", &Tiled::tile_ns},
    {"tile_dims_ns", &Tiled::tile_dims_ns},
    {"softmax_ns", &Tiled::softmax_ns},
    {"tensor_part", &Tiled::tensor_part},
    {"plain_ns", &Tiled::plain_ns},
    {"interval_ns", &Tiled::interval_ns},
    {"predicate_ns", &Tiled::predicate_ns},
    {"bitmap_ns", &Tiled::bitmap_ns},
    {"unit_ns", &Tiled::unit_ns},
    {"part_ns", &Tiled::part_ns},
});

constexpr auto kGathered = std::to_array<Named<Gathered>>({
    {"start_us", &Gathered::start_us},
    {"cold_us", &Gathered::cold_us},
    {"dram_share", &Gathered::dram_share},
    {"l2_share", &Gathered::l2_share},
    {"row_ns", &Gathered::row_ns},
    {"row_width_ns", &Gathered::row_width_ns},
    {"batch_ns", &Gathered::batch_ns},
    {"row_wait_ns", &Gathered::row_wait_ns},
    {"key_wait_ns", &Gathered::key_wait_ns},
    {"key_width_wait_ns", &Gathered::key_width_wait_ns},
    {"few_loads", &Gathered::few_loads},
});

constexpr auto kStaged = std::to_array<Named<Staged>>({
    {"start_us", &Staged::start_us},
    {"dram_share", &Staged::dram_share},
    {"l2_share", &Staged::l2_share},
    {"warp_ns", &Staged::warp_ns},
    {"octet_ns", &Staged::octet_ns},
    {"octet_width_ns", &Staged::octet_width_ns},
    {"octet_wait_ns", &Staged::octet_wait_ns},
    {"octet_width_wait_ns", &Staged::octet_width_wait_ns},
});

template <typename Coefficients>
constexpr auto& named() {
  if constexpr (std::is_same_v<Coefficients, Tiled>) {
    return kTiled;
  } else if constexpr (std::is_same_v<Coefficients, Gathered>) {
    return kGathered;
  } else {
    return kStaged;
  }
}

template <typename Coefficients>
auto& of_templates(cost::Coefficients& all) {
  if constexpr (std::is_same_v<Coefficients, Tiled>) {
    return all.tiled_attention;
  } else if constexpr (std::is_same_v<Coefficients, Gathered>) {
    return all.gathered_attention;
  } else {
    return all.staged_attention;
  }
}

double percentile_95(std::vector<double>& sorted) {
  std::ranges::sort(sorted);
  return sorted.empty() ? 0
                        : sorted[static_cast<std::size_t>(
                              std::ceil(0.95 * static_cast<double>(sorted.size() - 1)))];
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double to_five_places(double value) {
  return std::round(value * 1e5) / 1e5;
}

json to_json(const Regret& regret) {
  return {{"cases", regret.cases},
          {"mean", to_five_places(regret.mean)},
          {"percentile_95", to_five_places(regret.percentile_95)},
          {"most", to_five_places(regret.most)}};
}

json to_json(const PredictionError& error) {
  return {{"candidates", error.candidates},
          {"mean", to_five_places(error.mean)},
          {"percentile_95", to_five_places(error.percentile_95)}};
}

// As lowering makes it: every port packed and aligned.
contract::ContractScope scope_of(const SelectionMask& mask, const SelectionCase& one,
                                 const base::DeviceProfile& device) {
  contract::ContractScope scope{.dims = one.dims,
                                .attributes = {},
                                .dtypes = {{"T", DType::Float16}},
                                .device = {},
                                .mask_batch = mask.features.mask_batch,
                                .mask_heads = mask.features.mask_heads,
                                .mask_global_tiles = mask.global_tiles,
                                .config = {}};
  for (const auto& [name, value] : device.scalars()) {
    scope.device["device." + name] = value;
  }
  return scope;
}

template <typename Coefficients>
void write(json& into, const std::map<std::string, Coefficients, std::less<>>& of_templates) {
  for (const auto& [name, values] : of_templates) {
    for (const auto& [member, pointer] : named<Coefficients>()) {
      into[name][member] = values.*pointer;
    }
  }
}

template <typename Coefficients>
void read(const json& from, std::map<std::string, Coefficients, std::less<>>& of_templates) {
  for (const auto& [name, values] : from.items()) {
    const auto known = of_templates.find(name);
    Coefficients& into =
        known == of_templates.end() ? of_templates[name] = of_templates.at("") : known->second;
    for (const auto& [member, pointer] : named<Coefficients>()) {
      into.*pointer = values.at(member);
    }
  }
}

}  // namespace

double SelectionReplay::Observed::predicted_us(const cost::Model& model) const {
  return model.predict(problem, config, &work).total_us();
}

double SelectionReplay::Observed::log_error(const cost::Model& model) const {
  return std::log(predicted_us(model) / measured_us());
}

SelectionReplay::SelectionReplay(std::vector<SelectionMask> masks,
                                 const fusion::TemplateLibrary& templates,
                                 base::DeviceProfile device)
    : device_(std::move(device)), masks_(std::move(masks)) {
  for (const SelectionMask& mask : masks_) {
    for (const SelectionCase& one : mask.cases) {
      Case& observed = cases_.emplace_back(Case{.mask = &mask, .candidates = {}});
      const auto scope =
          std::make_shared<const contract::ContractScope>(scope_of(mask, one, device_));
      for (const SelectionCandidate& candidate : one.candidates) {
        const auto kernel = std::ranges::find_if(
            templates, [&](const auto& of) { return of.contract.name == candidate.kernel; });
        if (!candidate.measured_us || kernel == templates.end()) {
          continue;
        }
        Observed& entry = observed.candidates.emplace_back();
        entry.mask = &mask;
        entry.candidate = &candidate;
        entry.config = contract::default_config(kernel->contract);
        for (auto& [name, value] : entry.config) {
          const auto given = candidate.config.find(name);
          value = given == candidate.config.end() ? value : given->second;
        }
        entry.scope = scope;
        entry.problem = cost::make_problem(kernel->contract, *scope, {},
                                           std::numeric_limits<double>::infinity());
        entry.work.features = &mask.features;
        entry.work.windows = mask.windows;
        if (!kernel->contract.takes_mask_array("key_col")) {
          const auto tile_q = entry.config.find("tile_q");
          const bool is_packed = fusion::packs(kernel->contract);
          entry.work.tiles = &(is_packed ? mask.packed : mask.tiles)
                                  .at(tile_q == entry.config.end() ? 64 : tile_q->second);
          entry.work.long_tiles = cost::long_tiles(entry.problem, entry.config, *entry.work.tiles);
        }
      }
    }
  }
}

std::set<std::string> SelectionReplay::families() const {
  std::set<std::string> families;
  for (const SelectionMask& mask : masks_) {
    families.insert(mask.family);
  }
  return families;
}

const SelectionReplay::Observed* SelectionReplay::fastest(
    const Case& one, const std::function<bool(const Observed&)>& is) {
  const Observed* best = nullptr;
  for (const Observed& candidate : one.candidates) {
    if (is(candidate) && (best == nullptr || candidate.measured_us() < best->measured_us())) {
      best = &candidate;
    }
  }
  return best;
}

const SelectionReplay::Observed* SelectionReplay::predicted_fastest(
    const cost::Model& model, const Case& one, const std::function<bool(const Observed&)>& is) {
  const Observed* best = nullptr;
  cost::Prediction least;
  for (const Observed& candidate : one.candidates) {
    if (!is(candidate) || !candidate.candidate->is_in_place) {
      continue;
    }
    const cost::Prediction time =
        model.predict(candidate.problem, candidate.config, &candidate.work);
    if (best == nullptr || is_faster(time, least)) {
      best = &candidate;
      least = time;
    }
  }
  return best;
}

Regret SelectionReplay::regret(const Choose& choose, const std::string& family) const {
  std::vector<double> regrets;
  for (const Case& one : cases_) {
    const Observed* const best = fastest(one, [](const Observed&) { return true; });
    const Observed* const chosen =
        family.empty() || one.mask->family == family ? choose(one) : nullptr;
    if (chosen != nullptr) {
      regrets.push_back(chosen->measured_us() / best->measured_us() - 1);
    }
  }
  Regret regret{.cases = static_cast<int>(regrets.size()), .mean = mean(regrets)};
  regret.percentile_95 = percentile_95(regrets);
  regret.most = regrets.empty() ? 0 : regrets.back();
  return regret;
}

Regret SelectionReplay::model(const cost::Coefficients& coefficients,
                              const std::string& family) const {
  const cost::Model model(device_, coefficients);
  return regret(
      [&](const Case& one) {
        return predicted_fastest(model, one, [](const Observed&) { return true; });
      },
      family);
}

Regret SelectionReplay::model_of_best_kind(const cost::Coefficients& coefficients) const {
  const cost::Model model(device_, coefficients);
  return regret([&](const Case& one) {
    const bool by_rows = fastest(one, [](const Observed&) { return true; })->is_by_rows();
    return predicted_fastest(
        model, one, [&](const Observed& candidate) { return candidate.is_by_rows() == by_rows; });
  });
}

Regret SelectionReplay::paper() const {
  constexpr double kTau = 1.2;
  return regret([&](const Case& one) {
    const auto tiles = static_cast<double>(mask::ceil_div(one.mask->length, 16));
    const bool by_rows = one.mask->seen_of_16 < kTau / std::pow(std::log2(tiles), 2);
    return fastest(one,
                   [&](const Observed& candidate) { return candidate.is_by_rows() == by_rows; });
  });
}

Regret SelectionReplay::always_rows() const {
  return regret([](const Case& one) {
    return fastest(one, [](const Observed& candidate) { return candidate.is_by_rows(); });
  });
}

Regret SelectionReplay::always_blocks() const {
  return regret([](const Case& one) {
    return fastest(one, [](const Observed& candidate) { return !candidate.is_by_rows(); });
  });
}

std::vector<const SelectionReplay::Observed*> SelectionReplay::of_kernel(
    const std::string& kernel, const std::string& family_held_out) const {
  std::vector<const Observed*> observed;
  for (const Case& one : cases_) {
    for (const Observed& candidate : one.candidates) {
      if ((kernel.empty() || candidate.candidate->kernel == kernel) &&
          one.mask->family != family_held_out) {
        observed.push_back(&candidate);
      }
    }
  }
  return observed;
}

PredictionError SelectionReplay::error(const cost::Coefficients& coefficients,
                                       const std::string& kernel) const {
  const cost::Model model(device_, coefficients);
  std::vector<double> errors;
  for (const Observed* observed : of_kernel(kernel, "")) {
    errors.push_back(std::abs(observed->log_error(model)));
  }
  PredictionError error{.candidates = static_cast<int>(errors.size()), .mean = mean(errors)};
  error.percentile_95 = percentile_95(errors);
  return error;
}

template <typename Coefficients>
void SelectionReplay::fit(cost::Coefficients& all, const std::string& kernel,
                          const std::string& family_held_out) const {
  constexpr double kLeast = 1e-2;  // nanoseconds; what is 0 can only grow by factors from there
  const std::vector<const Observed*> observed = of_kernel(kernel, family_held_out);
  const auto put = [](Coefficients& into, const std::vector<double>& fitted_values) {
    for (std::size_t i = 0; i < fitted_values.size(); ++i) {
      into.*named<Coefficients>()[i].member = fitted_values[i];
    }
    into.dram_share = std::min(into.dram_share, 1.0);  // the rate is what can be had of memory
  };
  auto& kernels = of_templates<Coefficients>(all);
  Coefficients& fitted = kernels.try_emplace(kernel, kernels.at("")).first->second;
  std::vector<double> values;
  for (const auto& [name, member] : named<Coefficients>()) {
    values.push_back(std::max(fitted.*member, kLeast));
  }
  values = tune::fit_positive(values, [&](const std::vector<double>& tried) {
    cost::Coefficients changed = all;
    put(of_templates<Coefficients>(changed)[kernel], tried);
    const cost::Model model(device_, changed);
    std::vector<double> errors;
    errors.reserve(observed.size());
    for (const Observed* one : observed) {
      errors.push_back(one->log_error(model));
    }
    return errors;
  });
  put(fitted, values);
}

cost::Coefficients SelectionReplay::fitted(const cost::Coefficients& start,
                                           const std::string& family_held_out) const {
  std::map<std::string, const contract::TemplateContract*> kernels;
  for (const Case& one : cases_) {
    for (const Observed& candidate : one.candidates) {
      kernels.emplace(candidate.candidate->kernel, candidate.problem.contract);
    }
  }
  cost::Coefficients fitted = start;
  for (const auto& [kernel, contract] : kernels) {
    if (contract->takes_mask_array("window_col")) {
      fit<Staged>(fitted, kernel, family_held_out);
    } else if (contract->takes_mask_array("key_col")) {
      fit<Gathered>(fitted, kernel, family_held_out);
    } else {
      fit<Tiled>(fitted, kernel, family_held_out);
    }
  }
  return fitted;
}

json SelectionReplay::worst(const cost::Coefficients& coefficients, std::size_t count) const {
  const cost::Model model(device_, coefficients);
  const auto any = [](const Observed&) { return true; };
  const auto describe = [&](const Observed& one) {
    return json{{"kernel", one.candidate->kernel},
                {"parameters", one.candidate->config},
                {"measured_us", one.measured_us()},
                {"predicted_us", to_five_places(one.predicted_us(model))}};
  };
  std::vector<std::pair<double, json>> cases;
  for (const Case& one : cases_) {
    const Observed& best = *fastest(one, any);
    const Observed& chosen = *predicted_fastest(model, one, any);
    const double regret = chosen.measured_us() / best.measured_us() - 1;
    cases.emplace_back(regret,
                       json{{"mask", fmt::format("{}, {}", one.mask->family, one.mask->variant)},
                            {"length", one.mask->length},
                            {"dims", best.scope->dims},
                            {"regret", to_five_places(regret)},
                            {"chosen", describe(chosen)},
                            {"fastest", describe(best)}});
  }
  std::ranges::stable_sort(cases, std::greater<>(), &std::pair<double, json>::first);
  json worst = json::array();
  for (std::size_t i = 0; i < std::min(count, cases.size()); ++i) {
    worst.push_back(std::move(cases[i].second));
  }
  return worst;
}

json SelectionReplay::summary(const cost::Coefficients& coefficients) const {
  const std::set<std::string> all = families();
  const std::vector<std::string> names(all.begin(), all.end());
  std::vector<cost::Coefficients> held_out(names.size());
  base::parallel_for(std::ssize(names), [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    held_out[place] = fitted(coefficients, names[place]);
  });
  json by_family = json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    by_family[names[i]] = {{"regret", to_json(model(held_out[i], names[i]))},
                           {"coefficients", attention_coefficients(held_out[i])}};
  }
  const Regret of_held_out = regret([&](const Case& one) {
    const auto place = std::ranges::find(names, one.mask->family) - names.begin();
    const cost::Model model(device_, held_out[static_cast<std::size_t>(place)]);
    return predicted_fastest(model, one, [](const Observed&) { return true; });
  });
  json errors = {{"all", to_json(error(coefficients))}};
  std::set<std::string> kernels;
  for (const Observed* one : of_kernel("", "")) {
    kernels.insert(one->candidate->kernel);
  }
  for (const std::string& kernel : kernels) {
    errors[kernel] = to_json(error(coefficients, kernel));
  }
  return {{"regret",
           {{"model", to_json(model(coefficients))},
            {"held_out", to_json(of_held_out)},
            {"model_of_best_kind", to_json(model_of_best_kind(coefficients))},
            {"paper", to_json(paper())},
            {"always_rows", to_json(always_rows())},
            {"always_blocks", to_json(always_blocks())}}},
          {"error", std::move(errors)},
          {"worst", worst(coefficients, 20)},
          {"families", std::move(by_family)}};
}

json attention_coefficients(const cost::Coefficients& coefficients) {
  json result = {{"tiles", json::object()}, {"rows", json::object()}, {"windows", json::object()}};
  write(result["tiles"], coefficients.tiled_attention);
  write(result["rows"], coefficients.gathered_attention);
  write(result["windows"], coefficients.staged_attention);
  return result;
}

cost::Coefficients with_attention_coefficients(const json& written) {
  cost::Coefficients coefficients;
  read(written.at("tiles"), coefficients.tiled_attention);
  read(written.at("rows"), coefficients.gathered_attention);
  read(written.at("windows"), coefficients.staged_attention);
  return coefficients;
}

}  // namespace stof::bench
