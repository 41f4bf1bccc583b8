#include "engine/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/gpu_target.hpp"
#include "cost/model.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
#include "mask/attention_tiles.hpp"
#include "mask/packed_tiles.hpp"
#include "stof/error.hpp"
#include "tune/fit_rates.hpp"

namespace stof::engine {

namespace {

using base::DeviceProfile;

constexpr double kLongestUs = 2000;       // by the model; what takes longer tells nothing new
constexpr std::size_t kLeastKernels = 8;  // of which rates can be told

Graph product(std::int64_t m, std::int64_t k, std::int64_t n) {
  Graph graph(fmt::format("matmul {} x {} x {}", m, k, n));
  graph.output("y", graph.matmul(graph.input("x", {m, k}, DType::Float16),
                                 graph.input("w", {k, n}, DType::Float16)));
  return graph;
}

Graph norm(std::int64_t rows, std::int64_t hidden) {
  Graph graph(fmt::format("rms_norm {} x {}", rows, hidden));
  graph.output("y", graph.rms_norm(graph.input("x", {rows, hidden}, DType::Float16),
                                   graph.input("gain", {hidden}, DType::Float16)));
  return graph;
}

Graph sum(std::int64_t rows, std::int64_t hidden) {
  Graph graph(fmt::format("add {} x {}", rows, hidden));
  graph.output("y", graph.add(graph.input("a", {rows, hidden}, DType::Float16),
                              graph.input("b", {rows, hidden}, DType::Float16)));
  return graph;
}

// What is timed, and its mask if it is an attention.
struct Operator {
  Graph graph;
  std::optional<Mask> mask;
};

Operator attention(const char* name, std::int64_t heads, std::int64_t length, const Mask& mask) {
  Graph graph(fmt::format("{} attention, {} heads of {}", name, heads, length));
  const Shape shape = {1, heads, length, 64};
  const auto input = [&](const char* tensor) { return graph.input(tensor, shape, DType::Float16); };
  const Tensor q = input("q"), k = input("k"), v = input("v");
  graph.output("o", graph.attention(q, k, v, {.mask = mask}));
  return {.graph = std::move(graph), .mask = mask};
}

// Each bounded by something else: tensor cores, L2, DRAM, and the step from kernel to kernel.
std::vector<Operator> operators() {
  std::vector<Operator> operators;
  operators.push_back({product(4096, 4096, 4096), {}});
  operators.push_back({product(4096, 768, 3072), {}});
  operators.push_back({product(128, 768, 768), {}});
  operators.push_back({product(16, 4096, 4096), {}});
  operators.push_back({product(1, 4096, 4096), {}});
  operators.push_back({norm(32768, 1024), {}});
  operators.push_back({norm(128, 768), {}});
  operators.push_back({sum(32768, 1024), {}});
  operators.push_back({sum(128, 768), {}});
  operators.push_back(attention("causal", 32, 2048, causal()));
  operators.push_back(attention("sliding", 48, 2048, sliding_window(64, 64)));
  operators.push_back(attention("sliding", 12, 512, sliding_window(32, 32)));
  operators.push_back(attention("random", 16, 4096, random_tokens(0.001, 1)));
  return operators;
}

// What an operator is timed as.
std::vector<tune::Trial> trials_of(TuningSpace& space) {
  constexpr double kNear = 3;  // times the fastest; what takes longer is never chosen
  const tune::Space schemes = space.space();
  const auto parts = tune::parts_of(schemes, schemes.proposals.at(0));
  std::vector<tune::Trial> trials;
  std::set<std::string> kernels;
  for (const tune::Part& part : parts.value_or(std::vector<tune::Part>())) {
    const std::vector<tune::Setting>& settings = space.settings(part.problem);
    for (const tune::Setting& setting : settings) {
      const double limit_us = std::min(kLongestUs, kNear * settings.front().predicted_us);
      if (setting.predicted_us <= limit_us && kernels.insert(setting.kernel).second) {
        trials.push_back({.problem = part.problem, .setting = setting});
      }
    }
  }
  return trials;
}

// All that a prediction reads, apart from the rates.
struct Prediction {
  contract::ContractScope scope;
  kernel::KernelConfig config;
  cost::Problem problem;
  mask::MaskFeatures features;
  cost::TileWork tiles;
  std::optional<cost::AttentionWork> attention;
};

double tensor_bytes(const graph::Ir& ir) {
  double bytes = 0;
  for (const auto& value : ir.values) {
    double of_value = size_bytes(value->dtype);
    for (const std::int64_t extent : value->shape.sizes({})) {
      of_value *= static_cast<double>(extent);
    }
    bytes += of_value;
  }
  return bytes;
}

std::shared_ptr<const Prediction> prediction_of(const TuningSpace& space, const tune::Trial& trial,
                                                const std::optional<Mask>& mask,
                                                const fusion::TemplateLibrary& templates,
                                                const fusion::BuildLayout& build_layout) {
  const fusion::Lowered lowered = space.lower(trial);
  const auto kernel = std::ranges::find_if(templates, [&](const fusion::KernelTemplate& one) {
    return one.contract.name == trial.setting.kernel;
  });
  const auto made = std::make_shared<Prediction>();
  const int launched = lowered.program.launches.front().kernel;
  made->scope = lowered.scopes.at(static_cast<std::size_t>(launched));
  made->config = trial.setting.config;
  const double bytes = tensor_bytes(space.graph(trial.problem));
  made->problem = cost::make_problem(kernel->contract, made->scope, {}, bytes);
  made->problem.epilogue.bytes =
      bytes - made->problem.work.bytes;  // what no port takes, a hook does
  if (mask) {
    const mask::MaskLayout layout = build_layout(
        *mask, {.q_len = made->scope.dims.at("q_len"), .kv_len = made->scope.dims.at("kv_len")});
    made->features = mask::measure(*mask, layout);
    made->attention.emplace();
    made->attention->features = &made->features;
    made->attention->windows = mask::count_window_columns(layout);
    if (!kernel->contract.takes_mask_array("key_col")) {
      const auto given = made->config.find("tile_q");
      const std::int64_t tile_q = given == made->config.end() ? mask::kTile : given->second;
      const bool is_packed = fusion::packs(kernel->contract);
      made->tiles = cost::tile_work(is_packed ? mask::packed_tiles(layout, tile_q).lists
                                              : mask::attention_tiles(layout, tile_q));
      made->attention->tiles = &made->tiles;
      made->attention->long_tiles = cost::long_tiles(made->problem, made->config, made->tiles);
    }
  }
  return made;
}

nlohmann::json key_of(const DeviceProfile& device) {
  return {{"calibration", 1},
          {"device", device.name},
          {"target", device.target},
          {"sm_count", device.sm_count},
          {"clock_mhz", device.clock_mhz},
          {"memory_clock_mhz", device.memory_clock_mhz}};
}

}  // namespace

std::vector<Probe> calibration_probes(const DeviceProfile& device,
                                      const fusion::TemplateLibrary& templates,
                                      const fusion::BuildLayout& build_layout) {
  const fusion::BuildLayout layouts = fusion::remembering(build_layout);
  std::vector<Probe> probes;
  for (const Operator& one : operators()) {
    TuningSpace space(graph::normalise_but_attention(one.graph.ir()), templates, device, layouts);
    for (const tune::Trial& trial : trials_of(space)) {
      const auto made = prediction_of(space, trial, one.mask, templates, layouts);
      probes.push_back({.name = fmt::format("{} by {}", one.graph.name(), trial.setting.kernel),
                        .graph = one.graph,
                        .trial = trial,
                        .predicted_us = [made](const DeviceProfile& profile) {
                          const cost::Model model(profile);
                          return model
                              .predict(made->problem, made->config,
                                       made->attention ? &*made->attention : nullptr)
                              .total_us();
                        }});
    }
  }
  return probes;
}

Calibration calibrate(const TrialTools& tools, const fusion::TemplateLibrary& templates,
                      const fusion::BuildLayout& build_layout, cache::TuningStore& store) {
  const auto start = std::chrono::steady_clock::now();
  const DeviceProfile& before = *tools.profile;
  const fusion::BuildLayout layouts = fusion::remembering(build_layout);
  const std::vector<Probe> probes = calibration_probes(before, templates, layouts);
  TrialTools unchecked = tools;
  unchecked.has_checks = false;  // times are wanted, and the templates are those of every plan
  std::vector<std::unique_ptr<TuningSpace>> spaces;
  std::vector<kernel::KernelSpec> specs;
  for (const Probe& probe : probes) {
    spaces.push_back(std::make_unique<TuningSpace>(graph::normalise_but_attention(probe.graph.ir()),
                                                   templates, before, layouts));
    spaces.back()->space().problem({.begin = 0, .end = 1});
    const fusion::Lowered lowered = spaces.back()->lower(probe.trial);
    specs.insert(specs.end(), lowered.specs.begin(), lowered.specs.end());
  }
  tools.jit->try_each(specs, base::parse_gpu_target(before.target), tools.stop);  // all at once
  std::vector<tune::TimedKernel> timed;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    cache::TuningStore forgotten({}, false, {}, {});  // times that are taken anew each time
    tune::Records records(forgotten);
    TrialRunner runner(unchecked, *spaces[i], records);
    const std::vector<tune::Outcome> outcomes = runner.measure(std::span(&probes[i].trial, 1));
    if (!outcomes.empty() && outcomes[0].time_us) {
      timed.push_back({.name = probes[i].name,
                       .measured_us = *outcomes[0].time_us,
                       .predicted_us = probes[i].predicted_us});
    }
  }
  if (timed.size() < kLeastKernels) {
    throw CudaError(0, fmt::format("calibration: {} kernels could be timed, {} are needed",
                                   timed.size(), kLeastKernels));
  }
  tune::FittedRates fitted = tune::fit_rates(before, timed);
  fitted.profile.rates_source =
      fmt::format("calibrated {:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::now()));
  Calibration calibration{.before = before,
                          .after = fitted.profile,
                          .error_before = fitted.error_before,
                          .error_after = fitted.error_after,
                          .kernels = {},
                          .seconds = 0};
  for (const tune::TimedKernel& kernel : timed) {
    calibration.kernels.push_back({.name = kernel.name,
                                   .measured_us = kernel.measured_us,
                                   .before_us = kernel.predicted_us(before),
                                   .after_us = kernel.predicted_us(fitted.profile)});
  }
  store.add({.problem = key_of(before),
             .config = nlohmann::json::object(),
             .result = nlohmann::json::parse(base::to_json(fitted.profile))});
  calibration.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return calibration;
}

std::optional<DeviceProfile> find_calibration(cache::TuningStore& store,
                                              const DeviceProfile& device) {
  for (const cache::TuningRecord& record : store.find(key_of(device))) {
    try {
      DeviceProfile profile = base::device_profile_from_json(record.result.dump());
      // All but the rates is what the driver says now.
      DeviceProfile result = device;
      result.rates_source = std::move(profile.rates_source);
      for (const tune::FittedRate& rate : tune::kFittedRates) {
        result.*rate.member = profile.*rate.member;
      }
      return result;
    } catch (const GraphError&) {
      continue;  // a record that anybody may have written
    }
  }
  return std::nullopt;
}

}  // namespace stof::engine
