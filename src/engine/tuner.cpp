#include "engine/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/tuning_space.hpp"
#include "graph/canonical.hpp"
#include "tune/records.hpp"

namespace stof::engine {

using nlohmann::json;

namespace {

constexpr double kQuickSeconds = 10;
constexpr double kFullSeconds = 60;

// Of the time that tuning may take, for whole plans; trials have the rest.
constexpr double kWholeShare = 0.15;

// By how much a plan has to be faster without a setting for that to be no accident.
constexpr double kWithout = 0.002;

double seconds_of(const TuningRequest& request) {
  return request.seconds > 0              ? request.seconds
         : request.level == Tuning::Quick ? kQuickSeconds
                                          : kFullSeconds;
}

json number_or_null(const std::optional<double>& number) {
  return number ? json(*number) : json(nullptr);
}

std::optional<double> optional_number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                     : std::nullopt;
}

json record_of(const Tuned& tuned) {
  json segments = json::array();
  for (const TunedSegment& segment : tuned.segments) {
    json entry = tune::to_json(segment.setting);
    entry["problem"] = json::parse(segment.problem);
    entry["label"] = segment.label;
    entry["count"] = segment.count;
    entry["predicted_us"] = segment.setting.predicted_us;
    entry["time_us"] = number_or_null(segment.time_us);
    entry["before_us"] = number_or_null(segment.before_us);
    entry["kept"] = segment.is_kept;
    segments.push_back(std::move(entry));
  }
  json result = {{"level", static_cast<int>(tuned.level)},
                 {"segments", std::move(segments)},
                 {"time_us", number_or_null(tuned.time_us)},
                 {"before_us", number_or_null(tuned.before_us)},
                 {"plan_us", number_or_null(tuned.plan_us)},
                 {"plan_before_us", number_or_null(tuned.plan_before_us)},
                 {"ended", tuned.ended},
                 {"timed", tuned.timed},
                 {"recalled", tuned.recalled},
                 {"failed", tuned.failed},
                 {"seconds", tuned.seconds},
                 {"when", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                                      fmt::gmtime(std::chrono::system_clock::now()))}};
  if (tuned.scheme) {
    result["scheme"] = tuned.scheme->text();
  }
  return result;
}

// Nothing for JSON that record_of does not write: a record is a file that anybody may have made.
std::optional<Tuned> tuned_of(const json& result) {
  try {
    Tuned tuned{.level = static_cast<Tuning>(std::clamp(result.at("level").get<int>(), 0, 2)),
                .scheme = {},
                .segments = {},
                .time_us = optional_number(result, "time_us"),
                .before_us = optional_number(result, "before_us"),
                .plan_us = optional_number(result, "plan_us"),
                .plan_before_us = optional_number(result, "plan_before_us"),
                .ended = result.at("ended"),
                .timed = result.at("timed"),
                .recalled = result.at("recalled"),
                .failed = result.at("failed"),
                .seconds = result.at("seconds")};
    if (result.contains("scheme")) {
      tuned.scheme = fusion::Scheme::from_text(result["scheme"].get<std::string>());
    }
    for (const json& entry : result.at("segments")) {
      const std::optional<tune::Setting> setting = tune::setting_from_json(entry);
      if (!setting) {
        return std::nullopt;
      }
      tuned.segments.push_back({.problem = fusion::problem_key(entry.at("problem")),
                                .label = entry.at("label"),
                                .count = entry.at("count"),
                                .setting = *setting,
                                .time_us = optional_number(entry, "time_us"),
                                .before_us = optional_number(entry, "before_us"),
                                .is_kept = entry.at("kept")});
      tuned.segments.back().setting.predicted_us = entry.at("predicted_us");
    }
    return tuned;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string time_text(const std::optional<double>& time_us) {
  return time_us ? fmt::format("{:.1f} us", *time_us) : "unknown";
}

}  // namespace

json tuned_config() {
  return {{"what", "plan"}};
}

fusion::Decisions Tuned::decisions() const {
  fusion::Decisions decisions{.scheme = scheme, .settings = {}, .lists_all = false};
  for (const TunedSegment& segment : segments) {
    if (segment.time_us && segment.is_kept) {
      decisions.settings.emplace(
          segment.problem,
          fusion::Setting{.kernel = segment.setting.kernel, .config = segment.setting.config});
    }
  }
  return decisions;
}

json tuned_key(const graph::Ir& ir, const base::DeviceProfile& profile,
               const base::Digest& templates) {
  return {{"graph", graph::canonicalise(ir).digest.hex()},
          {"device", profile.name},
          {"target", profile.target},
          {"sm_count", profile.sm_count},
          {"templates", templates.hex()},
          {"version", STOF_VERSION}};
}

std::optional<Tuned> Tuner::find(const graph::Ir& ir) const {
  const auto record = tools_.store->find(key_of(ir), tuned_config());
  std::optional<Tuned> tuned = record ? tuned_of(record->result) : std::nullopt;
  if (tuned) {
    tuned->recalled += std::exchange(tuned->timed, 0);
    tuned->seconds = 0;
    tuned->ended = "known from an earlier tuning";
  }
  return tuned;
}

Tuned Tuner::tune(const graph::Ir& ir, const TuningRequest& request) const {
  const double max_seconds = seconds_of(request);
  const double start = tune::steady_seconds();
  const double until = start + max_seconds;
  TuningSpace space(ir, *tools_.templates, *tools_.profile, tools_.build_layout);
  tune::Records records(*tools_.store, tune::shipped_records());
  std::int64_t timed = 0;
  const auto tell = [&](const std::string& name, const std::string& detail, double done) {
    tools_.report({.stage = "tune",
                   .name = name,
                   .milliseconds = 1e3 * (tune::steady_seconds() - start),
                   .detail = detail,
                   .done = done});
  };
  const auto done = [&] { return std::min((tune::steady_seconds() - start) / max_seconds, 1.0); };
  TrialRunner runner({.device = *tools_.device,
                      .profile = tools_.profile,
                      .jit = tools_.jit,
                      .compiler = tools_.compiler(),
                      .stop = request.stop,
                      .tell = [&](const std::string& name,
                                  const std::string& detail) { tell(name, detail, done()); }},
                     space, records);
  const auto measure = [&](std::span<const tune::Trial> trials) {
    std::vector<tune::Outcome> outcomes = runner.measure(trials);
    timed += std::ssize(outcomes);
    tell(ir.name,
         fmt::format("{} trials, at most {:.0f} s left", timed,
                     std::max(until - tune::steady_seconds(), 0.0)),
         done());
    return outcomes;
  };
  tune::Trials trials(
      measure, [&](const tune::Trial& trial) { return runner.recall(trial); },
      {.max_seconds = until - kWholeShare * max_seconds - tune::steady_seconds()}, request.stop);

  // Each once: what is recorded meanwhile shifts nothing.
  using Ordered = std::map<std::string, std::vector<tune::Setting>>;
  const auto in_order = [&records](Ordered& ordered, const std::string& problem,
                                   const std::vector<tune::Setting>& listed) {
    const auto known = ordered.find(problem);
    return known != ordered.end()
               ? known->second
               : ordered.emplace(problem, records.order(problem, listed)).first->second;
  };
  Ordered few;
  Ordered all;
  tune::Space schemes = space.space();
  schemes.few_settings = [&](const std::string& problem) {
    return in_order(few, problem, space.few_settings(problem));
  };
  schemes.settings = [&](const std::string& problem) {
    return in_order(all, problem, space.settings(problem));
  };
  tune::SearchOptions options;
  options.is_fine = request.level == Tuning::Full;
  const tune::SearchResult found = tune::search(schemes, trials, options);

  const bool is_whole = found.end != tune::End::Stopped && found.time_us.has_value();
  Tuned tuned{.level = is_whole ? request.level : Tuning::None,
              .scheme = found.scheme,
              .segments = {},
              .time_us = found.time_us,
              .before_us = found.before_us,
              .plan_us = {},
              .plan_before_us = {},
              .ended = tune::name(found.end),
              .timed = trials.timed(),
              .recalled = trials.recalled(),
              .failed = trials.failed(),
              .seconds = tune::steady_seconds() - start};
  for (const tune::Decision& decision : found.decisions) {
    tuned.segments.push_back({.problem = decision.part.problem,
                              .label = space.label(decision.part.problem),
                              .count = decision.part.count,
                              .setting = decision.setting,
                              .time_us = decision.time_us,
                              .before_us = decision.before_us});
  }
  if (is_whole) {
    check_whole(ir, runner, until, tuned);
    tuned.seconds = tune::steady_seconds() - start;
  }
  tools_.store->add({.problem = key_of(ir), .config = tuned_config(), .result = record_of(tuned)});
  tell(ir.name,
       fmt::format("{} to {}, plan {} to {}, {} trials timed, {} known, {}",
                   time_text(tuned.before_us), time_text(tuned.time_us),
                   time_text(tuned.plan_before_us), time_text(tuned.plan_us), tuned.timed,
                   tuned.recalled, tuned.ended),
       1);
  return tuned;
}

// Alone a kernel finds nothing in the L2 and has the power of the GPU for itself. So each setting
// that the search changed has to hold its ground: the plan without it must not be faster.
void Tuner::check_whole(const graph::Ir& ir, const TrialRunner& runner, double until,
                        Tuned& tuned) const {
  const fusion::BuildLayout build_layout = fusion::remembering(tools_.build_layout);
  const auto lower = [&](const fusion::Decisions& decisions) {
    return fusion::lower(ir, *tools_.templates, *tools_.profile, build_layout, decisions);
  };
  std::vector<fusion::Lowered> plans = {lower({}), lower(tuned.decisions())};
  std::vector<TunedSegment*> changed;
  for (TunedSegment& segment : tuned.segments) {
    if (segment.time_us && segment.time_us != segment.before_us) {
      segment.is_kept = false;
      plans.push_back(lower(tuned.decisions()));
      segment.is_kept = true;
      changed.push_back(&segment);
    }
  }
  std::vector<double> times_us = runner.time_plans(ir, plans, until);
  if (times_us.empty()) {
    return;
  }
  bool has_dropped = false;
  for (std::size_t i = 0; 2 + i < times_us.size(); ++i) {
    if (times_us[2 + i] < times_us[1] * (1 - kWithout)) {
      changed[i]->is_kept = false;
      has_dropped = true;
    }
  }
  if (has_dropped) {
    plans.resize(1);
    plans.push_back(lower(tuned.decisions()));
    times_us = runner.time_plans(ir, plans, until);
  }
  tuned.plan_before_us = times_us[0];
  tuned.plan_us = times_us[1];
  if (times_us[1] > times_us[0]) {
    tuned.plan_us = times_us[0];
    tuned.scheme.reset();  // all as the model chooses
    for (TunedSegment& segment : tuned.segments) {
      segment.is_kept = false;
    }
  }
}

}  // namespace stof::engine
