// How good the search is, on many simulated surfaces: against all of their settings, and against
// as many drawn at random.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "surfaces.hpp"
#include "tune/search.hpp"

namespace {

using stof::testing::Surface;
using stof::testing::SurfaceOptions;
using stof::tune::Outcome;
using stof::tune::Part;
using stof::tune::SearchResult;
using stof::tune::Setting;
using stof::tune::Trial;
using stof::tune::Trials;

constexpr int kSurfaces = 50;

struct Found {
  double time_us = 0;  // truly
  int trials = 0;
};

Found search_in(const Surface& surface, int max_trials) {
  std::set<Trial> timed;
  const auto measure = [&](std::span<const Trial> trials) {
    std::vector<Outcome> outcomes;
    for (const Trial& trial : trials) {
      CHECK(timed.insert(trial).second);
      outcomes.push_back(surface.measure(trial.setting));
    }
    return outcomes;
  };
  Trials trials(measure, {}, {.max_trials = max_trials});
  const SearchResult result = stof::tune::fine_search(
      {{.problem = surface.name()}}, [&](const std::string&) { return surface.settings(); },
      trials);
  return {.time_us = surface.true_time(result.decisions.front().setting),
          .trials = static_cast<int>(trials.timed())};
}

// The setting that is the fastest of some by what is measured, by its true time.
double best_of(const Surface& surface, std::span<const Setting> settings) {
  double best = -1;
  double measured = 0;
  for (const Setting& setting : settings) {
    const Outcome outcome = surface.measure(setting);
    if (outcome.time_us && (best < 0 || *outcome.time_us < measured)) {
      measured = *outcome.time_us;
      best = surface.true_time(setting);
    }
  }
  return best;
}

double random_search(const Surface& surface, int trials, unsigned seed) {
  std::vector<Setting> settings = surface.settings();
  std::mt19937_64 random(seed);
  std::shuffle(settings.begin(), settings.end(), random);
  settings.resize(std::min(settings.size(), static_cast<std::size_t>(trials)));
  const double time_us = best_of(surface, settings);
  return time_us < 0 ? surface.true_time(surface.settings().front()) : time_us;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Comparison {
  std::vector<double> regret;         // of the search, against the best there is
  std::vector<double> random_regret;  // of as many trials at random
  std::vector<double> share;          // of the settings that were timed
};

Comparison compare(const SurfaceOptions& options, int max_trials, const char* family) {
  Comparison comparison;
  for (int i = 0; i < kSurfaces; ++i) {
    const Surface surface(fmt::format("{} {}", family, i), options);
    const Found found = search_in(surface, max_trials);
    const double best = surface.best_time();
    comparison.regret.push_back(found.time_us / best - 1);
    comparison.share.push_back(found.trials / static_cast<double>(surface.settings().size()));
    double at_random = 0;
    constexpr unsigned kSeeds = 5;
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      at_random += random_search(surface, found.trials, seed) / best - 1;
    }
    comparison.random_regret.push_back(at_random / kSeeds);
  }
  return comparison;
}

}  // namespace

TEST_CASE("144 settings, a model that is 15 % off: 2 % of the best by a fifth of the trials") {
  const Comparison result = compare({}, 144, "medium");
  MESSAGE("regret ", mean(result.regret), ", 95th ", percentile(result.regret, 0.95), ", random ",
          mean(result.random_regret), ", share ", mean(result.share));
  CHECK(mean(result.regret) <= 0.02);
  CHECK(percentile(result.regret, 0.95) <= 0.06);
  CHECK(mean(result.share) <= 0.25);
  CHECK(mean(result.regret) < 0.5 * mean(result.random_regret));
}

TEST_CASE("small spaces: 98 % of exhaustive search") {
  const SurfaceOptions options{.values = {4, 3, 2}};
  const Comparison result = compare(options, 24, "small");
  std::vector<double> against_exhaustive;
  for (int i = 0; i < kSurfaces; ++i) {
    const Surface surface(fmt::format("small {}", i), options);
    against_exhaustive.push_back(
        best_of(surface, surface.settings()) /
        (surface.best_time() * (1 + result.regret[static_cast<std::size_t>(i)])));
  }
  MESSAGE("of exhaustive ", mean(against_exhaustive), ", share ", mean(result.share));
  CHECK(mean(against_exhaustive) >= 0.98);
  CHECK(percentile(against_exhaustive, 0) >= 0.98);
}

TEST_CASE("540 settings: the budget is what it may time, and better spent than at random") {
  const SurfaceOptions options{.values = {5, 4, 3, 3, 3}, .model_error = 0.25};
  for (const int budget : {10, 20, 40}) {
    const Comparison result = compare(options, budget, "large");
    MESSAGE(budget, " trials: regret ", mean(result.regret), ", random ",
            mean(result.random_regret));
    CHECK(*std::ranges::max_element(result.share) <= budget / 540.0 + 1e-12);
    CHECK(mean(result.regret) < 0.6 * mean(result.random_regret));
  }
}

TEST_CASE("a model that knows nothing is not worse than chance") {
  const Comparison result = compare({.model_error = 5}, 40, "blind");
  MESSAGE("regret ", mean(result.regret), ", random ", mean(result.random_regret));
  CHECK(mean(result.regret) < mean(result.random_regret));
}

TEST_CASE("of several segments the budget goes where time is to be gained") {
  // Three segments; one runs twelve times. Equal trials, drawn at random for each in turn.
  std::vector<double> regret;
  std::vector<double> random_regret;
  for (int i = 0; i < kSurfaces; ++i) {
    std::map<std::string, Surface> surfaces;
    std::vector<Part> parts;
    for (int part = 0; part < 3; ++part) {
      const std::string name = fmt::format("whole {} {}", i, part);
      surfaces.emplace(name, Surface(name, {}));
      parts.push_back({.problem = name, .count = part == 0 ? 12 : 1});
    }
    const auto measure = [&](std::span<const Trial> trials) {
      std::vector<Outcome> outcomes;
      for (const Trial& trial : trials) {
        outcomes.push_back(surfaces.at(trial.problem).measure(trial.setting));
      }
      return outcomes;
    };
    Trials trials(measure, {}, {.max_trials = 60});
    const SearchResult result = stof::tune::fine_search(
        parts, [&](const std::string& name) { return surfaces.at(name).settings(); }, trials);
    double best = 0;
    double found = 0;
    double at_random = 0;
    for (const auto& decision : result.decisions) {
      const Surface& surface = surfaces.at(decision.part.problem);
      best += decision.part.count * surface.best_time();
      found += decision.part.count * surface.true_time(decision.setting);
      at_random +=
          decision.part.count * random_search(surface, static_cast<int>(trials.timed() / 3), 1);
    }
    regret.push_back(found / best - 1);
    random_regret.push_back(at_random / best - 1);
  }
  MESSAGE("regret ", mean(regret), ", random ", mean(random_regret));
  CHECK(mean(regret) <= 0.02);
  CHECK(mean(regret) < 0.5 * mean(random_regret));
}
