#include "tune/race.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace stof::tune {

namespace {

// Between the quarters of the canary's times, as a share of the fastest: one late sample is the
// host's.
double spread(std::vector<double> times) {
  if (times.size() < 2) {
    return 0;
  }
  std::ranges::sort(times);
  const std::size_t outer = times.size() / 4;
  return (times[times.size() - 1 - outer] - times[outer]) / times[outer];
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

RaceResult race(int candidates, const TimeRound& time_round, const RaceOptions& options) {
  const auto count = static_cast<std::size_t>(candidates);
  RaceResult result{.times_us = std::vector<double>(count)};
  std::vector<std::vector<double>> samples(count);
  std::vector<int> running(count);
  std::iota(running.begin(), running.end(), 0);
  int samples_each = options.first_samples;
  const auto is_late = [&] { return options.is_late && options.is_late(); };
  for (int number = 0; number < options.rounds && !running.empty(); ++number, samples_each *= 2) {
    if (number > 0 && is_late()) {
      break;
    }
    Round round = time_round(running, samples_each);
    double canary_spread = spread(round.canary_us);
    for (int i = 0; i < options.max_repeats && canary_spread > options.canary_spread && !is_late();
         ++i) {
      round = time_round(running, samples_each);
      canary_spread = spread(round.canary_us);
      ++result.repeats;
    }
    result.canary_spread = std::max(result.canary_spread, canary_spread);
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto candidate = static_cast<std::size_t>(running[i]);
      samples[candidate].insert(samples[candidate].end(), round.times_us[i].begin(),
                                round.times_us[i].end());
      result.times_us[candidate] = median(samples[candidate]);
    }
    const auto time_of = [&](int i) { return result.times_us[static_cast<std::size_t>(i)]; };
    std::ranges::stable_sort(running, {}, time_of);
    const auto faster = static_cast<std::ptrdiff_t>(
        std::ceil(static_cast<double>(running.size()) * options.survivors));
    const double limit = time_of(running.front()) * (1 + options.close);
    const auto slow =
        std::find_if(running.begin(), running.end(), [&](int i) { return time_of(i) > limit; });
    running.erase(std::max(running.begin() + faster, slow), running.end());
    if (running.size() == 1) {
      break;
    }
  }
  return result;
}

}  // namespace stof::tune
