#include "tune/trials.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

namespace {

using stof::tune::End;
using stof::tune::Outcome;
using stof::tune::Setting;
using stof::tune::Trial;
using stof::tune::Trials;

std::vector<Trial> some_trials(int count) {
  std::vector<Trial> trials;
  for (int i = 0; i < count; ++i) {
    trials.push_back({.problem = "p", .setting = {.kernel = "k", .config = {{"tile", i}}}});
  }
  return trials;
}

// Times of 100, 101, … µs; counts what it is asked for.
struct Stopwatch {
  std::vector<Trial> timed;

  stof::tune::Measure measure() {
    return [this](std::span<const Trial> trials) {
      std::vector<Outcome> outcomes;
      for (const Trial& trial : trials) {
        timed.push_back(trial);
        outcomes.push_back({.time_us = 100.0 + static_cast<double>(trial.setting.config.at("tile")),
                            .failure = {}});
      }
      return outcomes;
    };
  }
};

}  // namespace

TEST_CASE("a trial is timed once, however often it is asked for") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  std::vector<Trial> twice = some_trials(3);
  twice.push_back(twice.front());
  trials.time(twice);
  trials.time(twice);
  CHECK(watch.timed.size() == 3);
  CHECK(trials.timed() == 3);
  CHECK(*trials.find(twice[2])->time_us == 102);
  CHECK(trials.find(some_trials(4).back()) == nullptr);
  CHECK_FALSE(trials.end());
}

TEST_CASE("what is recalled is not timed and takes nothing of the budget") {
  Stopwatch watch;
  const auto recall = [](const Trial& trial) -> std::optional<Outcome> {
    if (trial.setting.config.at("tile") % 2 == 0) {
      return Outcome{.time_us = 7, .failure = {}};
    }
    return std::nullopt;
  };
  Trials trials(watch.measure(), recall, {.max_trials = 5});
  trials.time(some_trials(10));
  CHECK(watch.timed.size() == 5);
  CHECK(trials.recalled() == 5);
  CHECK(*trials.find(some_trials(1)[0])->time_us == 7);
}

TEST_CASE("the budget of trials is kept to the trial, over many batches") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {.max_trials = 77});
  trials.time(some_trials(200));
  CHECK(watch.timed.size() == 77);
  CHECK(trials.end() == End::Trials);
  trials.time(some_trials(300));
  CHECK(watch.timed.size() == 77);
}

TEST_CASE("a share of the budget holds until it is raised") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {.max_trials = 10});
  trials.limit(0.5);
  trials.time(some_trials(20));
  CHECK(watch.timed.size() == 5);
  trials.limit(1);
  trials.time(some_trials(20));
  CHECK(watch.timed.size() == 10);
}

TEST_CASE("no batch begins that would not end in time") {
  Stopwatch watch;
  double now = 1000;
  const auto measure = [&, inner = watch.measure()](std::span<const Trial> batch) {
    now += 4;
    return inner(batch);
  };
  Trials trials(measure, {}, {.max_seconds = 10}, {}, [&] { return now; });
  trials.time(some_trials(1000));
  CHECK(watch.timed.size() == 2 * Trials::kMostInBatch);  // at 0 and 4 seconds
  CHECK(trials.end() == End::Seconds);
  CHECK(trials.seconds() == 8);
}

TEST_CASE("a budget of time that is too small for anything is enough for one batch") {
  for (const double budget : {-1.0, 0.0, 1e-3}) {
    Stopwatch watch;
    double now = 0;
    Trials trials(watch.measure(), {}, {.max_seconds = budget}, {}, [&] { return now += 0.1; });
    trials.time(some_trials(1000));
    CHECK(watch.timed.size() == Trials::kMostInBatch);
    CHECK(trials.end() == End::Seconds);
  }
}

TEST_CASE("a budget of time holds whatever batches cost") {
  // A batch compiles on so many threads, and a few of its trials have data to make.
  constexpr double kCompile = 0.7;
  constexpr double kData = 1.5;
  for (const int threads : {1, 4, 16}) {
    for (const double budget : {5.0, 20.0, 51.0}) {
      Stopwatch watch;
      double now = 0;
      double longest = 0;
      const auto measure = [&, inner = watch.measure()](std::span<const Trial> batch) {
        const double rounds = std::ceil(static_cast<double>(batch.size()) / threads);
        const double took = kCompile * rounds + (watch.timed.size() % 5 == 0 ? kData : 0);
        longest = std::max(longest, took);
        now += took;
        return inner(batch);
      };
      Trials trials(measure, {}, {.max_seconds = budget}, {}, [&] { return now; });
      while (!trials.end()) {
        trials.time(some_trials(static_cast<int>(watch.timed.size()) + 40));
      }
      CHECK(trials.end() == End::Seconds);
      CHECK(trials.seconds() <= std::max(budget, longest));
      CHECK(trials.seconds() >= budget - longest);
    }
  }
}

TEST_CASE("a stop ends it, and a measurement that was stopped gives what it has") {
  std::stop_source stop;
  Stopwatch watch;
  const auto measure = [&, inner = watch.measure()](std::span<const Trial> batch) {
    stop.request_stop();
    return inner(batch.first(4));
  };
  Trials trials(measure, {}, {}, stop.get_token());
  trials.time(some_trials(100));
  CHECK(trials.timed() == 4);
  CHECK(trials.find(some_trials(4)[3]) != nullptr);
  CHECK(trials.find(some_trials(5)[4]) == nullptr);
  CHECK(trials.end() == End::Stopped);
}

TEST_CASE("times within one percent are a tie, which the order of the settings decides") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  trials.time(some_trials(5));
  std::vector<Setting> settings;
  for (const Trial& trial : some_trials(5)) {
    settings.insert(settings.begin(), trial.setting);  // the slowest first
  }
  const auto best = trials.best("p", settings);
  REQUIRE(best.has_value());
  CHECK(best->place == 3);  // 101 µs, before 100 µs
  CHECK(best->time_us == 101);
  CHECK_FALSE(trials.best("q", settings).has_value());
}
