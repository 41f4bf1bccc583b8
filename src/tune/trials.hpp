#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "tune/trial.hpp"

namespace stof::tune {

struct Budget {
  std::int64_t max_trials = std::int64_t{1} << 40;
  double max_seconds = std::numeric_limits<double>::infinity();
};

// Seconds since some fixed point; never runs backwards.
using Clock = std::function<double()>;
double steady_seconds();

// Why a search ended.
enum class End : std::uint8_t { Exhausted, Gain, Trials, Seconds, Stopped };
const char* name(End end);  // "nothing left to try", …

// What a search knows of its trials: each is timed once at most, and no more of them than the
// budget has. From one thread.
class Trials {
 public:
  Trials(Measure measure, Recall recall, Budget budget, std::stop_token stop = {},
         Clock clock = steady_seconds);

  // Finds out about these, as far as the budget goes: what is neither known nor recalled is timed
  // in batches of kMostInBatch, which nothing interrupts. The first one begins however little time
  // there is, of the others none that would not end in time, were it as slow as the slowest so far.
  void time(std::span<const Trial> trials);

  const Outcome* find(const Trial& trial) const;  // null: not known
  // The settings of a problem that can be used, the fastest first; of those within kTie of the
  // fastest, the one that comes first in `settings` leads.
  struct Best {
    std::size_t place = 0;  // in `settings`
    double time_us = 0;
  };
  std::optional<Best> best(const std::string& problem, std::span<const Setting> settings) const;

  // Holds what follows to this share of what the whole budget is; 1 to all of it.
  void limit(double share) { share_ = share; }
  // The limit that is reached; nothing while there is none.
  std::optional<End> end() const;

  std::int64_t timed() const { return timed_; }
  std::int64_t recalled() const { return recalled_; }
  std::int64_t failed() const { return failed_; }  // of both
  double seconds() const { return clock_() - start_; }

  static constexpr std::size_t kMostInBatch = 32;
  // Times that differ by less are the same.
  static constexpr double kTie = 0.01;

 private:
  std::int64_t trials_left() const;
  double seconds_left() const { return budget_.max_seconds * share_ - seconds(); }
  std::vector<Outcome> measure(std::span<const Trial> batch);
  void keep(const Trial& trial, Outcome outcome);

  Measure measure_;
  Recall recall_;
  Budget budget_;
  std::stop_token stop_;
  Clock clock_;
  double start_;
  double share_ = 1;
  std::optional<double> slowest_batch_s_;  // nothing: none has begun
  std::int64_t timed_ = 0;
  std::int64_t recalled_ = 0;
  std::int64_t failed_ = 0;
  std::map<Trial, Outcome> outcomes_;
};

}  // namespace stof::tune
