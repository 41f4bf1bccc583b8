#include "engine/calibration.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "fusion/lower.hpp"
#include "graph/normalise.hpp"
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

Graph attention(const char* name, std::int64_t heads, std::int64_t length, const Mask& mask) {
  Graph graph(fmt::format("{} attention, {} heads of {}", name, heads, length));
  const Shape shape = {1, heads, length, 64};
  const auto input = [&](const char* tensor) { return graph.input(tensor, shape, DType::Float16); };
  const Tensor q = input("q"), k = input("k"), v = input("v");
  graph.output("o", graph.attention(q, k, v, {.mask = mask}));
  return graph;
}

// Each bounded by something else: tensor cores, L2, DRAM, and the step from kernel to kernel.
std::vector<Graph> graphs() {
  std::vector<Graph> graphs;
  graphs.push_back(product(4096, 4096, 4096));
  graphs.push_back(product(4096, 768, 3072));
  graphs.push_back(product(128, 768, 768));
  graphs.push_back(product(16, 4096, 4096));
  graphs.push_back(product(1, 4096, 4096));
  graphs.push_back(norm(32768, 1024));
  graphs.push_back(norm(128, 768));
  graphs.push_back(sum(32768, 1024));
  graphs.push_back(sum(128, 768));
  graphs.push_back(attention("causal", 32, 2048, causal()));
  graphs.push_back(attention("sliding", 48, 2048, sliding_window(64, 64)));
  graphs.push_back(attention("sliding", 12, 512, sliding_window(32, 32)));
  return graphs;
}

// What an operator is timed as: the best setting of each template that takes it.
std::vector<tune::Trial> trials_of(TuningSpace& space) {
  const tune::Space schemes = space.space();
  const auto parts = tune::parts_of(schemes, schemes.proposals.at(0));
  std::vector<tune::Trial> trials;
  std::set<std::string> kernels;
  for (const tune::Part& part : parts.value_or(std::vector<tune::Part>())) {
    for (const tune::Setting& setting : space.settings(part.problem)) {
      if (setting.predicted_us <= kLongestUs && kernels.insert(setting.kernel).second) {
        trials.push_back({.problem = part.problem, .setting = setting});
      }
    }
  }
  return trials;
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

Calibration calibrate(const TrialTools& tools, const fusion::TemplateLibrary& templates,
                      const fusion::BuildLayout& build_layout, cache::TuningStore& store) {
  const auto start = std::chrono::steady_clock::now();
  const DeviceProfile& before = *tools.profile;
  std::vector<tune::TimedKernel> timed;
  std::vector<std::unique_ptr<TuningSpace>> spaces;  // that the predictions read
  for (const Graph& graph : graphs()) {
    spaces.push_back(std::make_unique<TuningSpace>(graph::normalise_but_attention(graph.ir()),
                                                   templates, before, build_layout));
    TuningSpace& space = *spaces.back();
    const std::vector<tune::Trial> trials = trials_of(space);
    cache::TuningStore forgotten({}, false, {}, {});  // times that are taken anew each time
    tune::Records records(forgotten);
    TrialRunner runner(tools, space, records);
    const std::vector<tune::Outcome> outcomes = runner.measure(trials);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].time_us) {
        timed.push_back({.name = fmt::format("{} by {}", graph.name(), trials[i].setting.kernel),
                         .measured_us = *outcomes[i].time_us,
                         .predicted_us = [&space, trial = trials[i]](const DeviceProfile& profile) {
                           return space.predict(trial, profile);
                         }});
      }
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
