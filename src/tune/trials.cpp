#include "tune/trials.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace stof::tune {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const char* name(End end) {
  switch (end) {
    case End::Exhausted:
      return "nothing left to try";
    case End::Gain:
      return "no more to gain";
    case End::Trials:
      return "trials used up";
    case End::Seconds:
      return "time used up";
    case End::Stopped:
      break;
  }
  return "stopped";
}

Trials::Trials(Measure measure, Recall recall, Budget budget, std::stop_token stop, Clock clock)
    : measure_(std::move(measure)),
      recall_(std::move(recall)),
      budget_(budget),
      stop_(std::move(stop)),
      clock_(std::move(clock)),
      start_(clock_()) {}

std::int64_t Trials::trials_left() const {
  const auto most = static_cast<double>(budget_.max_trials) * share_;
  return static_cast<std::int64_t>(std::ceil(most - static_cast<double>(timed_)));
}

std::optional<End> Trials::end() const {
  if (stop_.stop_requested()) {
    return End::Stopped;
  }
  if (trials_left() <= 0) {
    return End::Trials;
  }
  if (slowest_batch_s_ && (seconds_left() <= 0 || seconds_left() < *slowest_batch_s_)) {
    return End::Seconds;
  }
  return std::nullopt;
}

std::vector<Outcome> Trials::measure(std::span<const Trial> batch) {
  const double begin = clock_();
  std::vector<Outcome> outcomes = measure_(batch);
  slowest_batch_s_ = std::max(slowest_batch_s_.value_or(0), clock_() - begin);
  STOF_CHECK(outcomes.size() <= batch.size())
      << "tune: " << outcomes.size() << " outcomes of " << batch.size() << " trials";
  return outcomes;
}

void Trials::keep(const Trial& trial, Outcome outcome) {
  failed_ += outcome.time_us ? 0 : 1;
  outcomes_.emplace(trial, std::move(outcome));
}

void Trials::time(std::span<const Trial> trials) {
  std::vector<Trial> unknown;
  std::set<Trial> seen;
  for (const Trial& trial : trials) {
    if (find(trial) != nullptr || !seen.insert(trial).second) {
      continue;
    }
    if (std::optional<Outcome> outcome = recall_ ? recall_(trial) : std::nullopt) {
      ++recalled_;
      keep(trial, *std::move(outcome));
    } else {
      unknown.push_back(trial);
    }
  }
  std::span<const Trial> rest = unknown;
  while (!rest.empty() && !end()) {
    const auto count =
        std::min({rest.size(), kMostInBatch, static_cast<std::size_t>(trials_left())});
    std::vector<Outcome> outcomes = measure(rest.first(count));
    const std::int64_t timed_before = timed_;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i].is_known()) {
        keep(rest[i], std::move(outcomes[i]));
        ++timed_;
      }
    }
    if (timed_ - timed_before < static_cast<std::int64_t>(count)) {
      return;
    }
    rest = rest.subspan(count);
  }
}

const Outcome* Trials::find(const Trial& trial) const {
  const auto found = outcomes_.find(trial);
  return found == outcomes_.end() ? nullptr : &found->second;
}

std::optional<Trials::Best> Trials::best(const std::string& problem,
                                         std::span<const Setting> settings) const {
  std::vector<Best> usable;
  for (std::size_t place = 0; place < settings.size(); ++place) {
    const Outcome* outcome = find({.problem = problem, .setting = settings[place]});
    if (outcome != nullptr && outcome->time_us) {
      usable.push_back({.place = place, .time_us = *outcome->time_us});
    }
  }
  if (usable.empty()) {
    return std::nullopt;
  }
  const double fastest = std::ranges::min_element(usable, {}, &Best::time_us)->time_us;
  return *std::ranges::find_if(
      usable, [&](const Best& best) { return best.time_us <= fastest * (1 + kTie); });
}

}  // namespace stof::tune
