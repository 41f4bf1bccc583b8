#include "tune/race.hpp"

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

namespace {

using stof::tune::RaceOptions;
using stof::tune::RaceResult;
using stof::tune::Round;

// Candidates of given times with normal noise; counts the samples of each.
struct Stable {
  std::vector<double> true_us;
  double noise = 0.02;
  std::mt19937_64 random{7};
  std::vector<int> samples = std::vector<int>(true_us.size());

  double draw(double time_us) {
    return time_us * (1 + noise * std::normal_distribution<double>()(random));
  }

  stof::tune::TimeRound time_round() {
    return [this](std::span<const int> candidates, int count) {
      Round round;
      for (const int candidate : candidates) {
        std::vector<double>& times = round.times_us.emplace_back();
        for (int i = 0; i < count; ++i) {
          times.push_back(draw(true_us[static_cast<std::size_t>(candidate)]));
          ++samples[static_cast<std::size_t>(candidate)];
        }
      }
      round.canary_us = {10, 10.05, 10.1};
      return round;
    };
  }
};

}  // namespace

TEST_CASE("the fastest are timed longest and come out right") {
  Stable stable{.true_us = {20, 30, 10, 40, 10.5, 80, 15, 25}};
  const RaceResult result = stof::tune::race(8, stable.time_round());
  REQUIRE(result.times_us.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(result.times_us[i] == doctest::Approx(stable.true_us[i]).epsilon(0.04));
  }
  CHECK(std::ranges::min_element(result.times_us) - result.times_us.begin() == 2);
  CHECK(stable.samples[5] == 5);
  CHECK(stable.samples[2] >= 5 + 10 + 20);
  CHECK(result.repeats == 0);
}

TEST_CASE("the winner of a noisy race is as good as the best, over many races") {
  int misses = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> times(10, 14);
    Stable stable{.true_us = {}, .noise = 0.03, .random = std::mt19937_64(seed + 1000)};
    for (int i = 0; i < 16; ++i) {
      stable.true_us.push_back(times(random));
    }
    stable.samples.resize(16);
    const RaceResult result = stof::tune::race(16, stable.time_round());
    const auto winner = std::ranges::min_element(result.times_us) - result.times_us.begin();
    const double best = *std::ranges::min_element(stable.true_us);
    misses += stable.true_us[static_cast<std::size_t>(winner)] > best * 1.02 ? 1 : 0;
  }
  CHECK(misses <= 3);
}

TEST_CASE("a round with an uneasy canary is repeated, and reported where that does not help") {
  int rounds = 0;
  const auto disturbed_once = [&](std::span<const int> candidates, int) {
    ++rounds;
    const bool is_disturbed = rounds == 1;
    return Round{.times_us = std::vector<std::vector<double>>(
                     candidates.size(), std::vector<double>(3, is_disturbed ? 99.0 : 5.0)),
                 .canary_us = {10, is_disturbed ? 12.0 : 10.0, 10}};
  };
  const RaceResult calm = stof::tune::race(1, disturbed_once);
  CHECK(calm.repeats == 1);
  CHECK(calm.times_us.front() == 5);
  CHECK(calm.canary_spread == 0);

  rounds = 0;
  const auto always = [&](std::span<const int> candidates, int) {
    ++rounds;
    return Round{.times_us = std::vector<std::vector<double>>(candidates.size(), {5, 5, 5}),
                 .canary_us = {10, 11, 10, 11}};
  };
  const RaceResult uneasy = stof::tune::race(1, always, {.rounds = 1, .max_repeats = 2});
  CHECK(rounds == 3);
  CHECK(uneasy.repeats == 2);
  CHECK(uneasy.canary_spread == doctest::Approx(0.1));
}

TEST_CASE("a race that is late ends after its first round, and repeats nothing") {
  Stable stable{.true_us = {20, 10, 10.1}};
  bool is_late = true;
  RaceOptions options{.is_late = [&] { return is_late; }};
  const auto uneasy = [&, inner = stable.time_round()](std::span<const int> racing, int samples) {
    Round round = inner(racing, samples);
    round.canary_us = {10, 12, 10, 12};
    return round;
  };
  const RaceResult late = stof::tune::race(3, uneasy, options);
  CHECK(late.repeats == 0);
  CHECK(stable.samples == std::vector<int>{5, 5, 5});
  CHECK(late.times_us[0] == doctest::Approx(20).epsilon(0.05));
  is_late = false;
  CHECK(stof::tune::race(3, uneasy, options).repeats > 0);
}

TEST_CASE("no candidates, no race") {
  const RaceResult result = stof::tune::race(0, [](std::span<const int>, int) { return Round{}; });
  CHECK(result.times_us.empty());
}
