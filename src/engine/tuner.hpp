#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "cache/tuning_store.hpp"
#include "engine/trial_runner.hpp"
#include "fusion/decisions.hpp"
#include "fusion/lower.hpp"
#include "graph/ir.hpp"
#include "jit/template_jit.hpp"
#include "stof/options.hpp"
#include "tune/search.hpp"

namespace stof::engine {

// Segments of one problem in a tuned plan.
struct TunedSegment {
  std::string problem;  // see fusion/problem.hpp
  std::string label;    // what the first of them computes: "linear_3, gelu_4"
  int count = 1;
  tune::Setting setting;
  std::optional<double> time_us;    // of one; nothing: it was not timed
  std::optional<double> before_us;  // with the model's choice of a setting
  bool is_kept = true;              // false: within the whole plan the model's choice is faster
};

// What tuning found for a graph.
struct Tuned {
  Tuning level = Tuning::None;  // that was gone through; None: it was stopped
  std::optional<fusion::Scheme> scheme;
  std::vector<TunedSegment> segments;
  std::optional<double> time_us;    // of all segments together
  std::optional<double> before_us;  // of what the model chooses
  std::optional<double> plan_us;    // of the whole plan as it runs; nothing: not timed
  std::optional<double> plan_before_us;
  std::string ended;          // why
  std::int64_t timed = 0;     // trials
  std::int64_t recalled = 0;  // trials that an earlier tuning had timed
  std::int64_t failed = 0;    // of all
  double seconds = 0;

  fusion::Decisions decisions() const;
};

// What is found is a record of this problem, and of one config for all.
nlohmann::json tuned_key(const graph::Ir& ir, const base::DeviceProfile& profile,
                         const base::Digest& templates);
nlohmann::json tuned_config();

// Everything is used for as long as a tuner lives.
struct TunerTools {
  std::optional<int> device;  // nothing: there is no GPU to time on
  const base::DeviceProfile* profile = nullptr;
  const fusion::TemplateLibrary* templates = nullptr;
  base::Digest templates_digest;
  const jit::TemplateJit* jit = nullptr;
  std::function<std::string()> compiler;  // its build
  cache::TuningStore* store = nullptr;
  fusion::BuildLayout build_layout;
  std::function<void(const Event&)> report;
};

struct TuningRequest {
  Tuning level = Tuning::Full;
  double seconds = 0;  // as EngineOptions::tuning_seconds
  std::stop_token stop;
};

// Tunes graphs of static shapes and remembers what it found.
class Tuner {
 public:
  explicit Tuner(TunerTools tools) : tools_(std::move(tools)) {}

  // What was found for the graph before, with these templates and on such a GPU.
  std::optional<Tuned> find(const graph::Ir& ir) const;

  // Searches, times and remembers. Throws what TrialRunner::measure does, and GraphError as lower.
  Tuned tune(const graph::Ir& ir, const TuningRequest& request) const;

 private:
  nlohmann::json key_of(const graph::Ir& ir) const {
    return tuned_key(ir, *tools_.profile, tools_.templates_digest);
  }
  // Keeps of what was found alone what is faster within the whole plan, as far as there is time
  // until then to find out.
  void check_whole(const graph::Ir& ir, const TrialRunner& runner, double until,
                   Tuned& tuned) const;

  TunerTools tools_;
};

}  // namespace stof::engine
