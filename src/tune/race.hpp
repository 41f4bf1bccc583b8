#pragma once

#include <functional>
#include <span>
#include <vector>

namespace stof::tune {

// What one round of a race measured, all in microseconds.
struct Round {
  std::vector<std::vector<double>> times_us;  // of each candidate that was asked for, in order
  std::vector<double> canary_us;  // of one and the same work, before, between and after them
};

// Times some candidates in turn, so that what disturbs one disturbs all: `samples` of each.
using TimeRound = std::function<Round(std::span<const int> candidates, int samples)>;

struct RaceOptions {
  int first_samples = 5;        // of each candidate in the first round; twice as many in the next
  int rounds = 4;               // at most
  double survivors = 0.5;       // of each round, the faster ones
  double close = 0.02;          // those as near to the fastest survive too
  double canary_spread = 0.03;  // beyond it the GPU was shared or changed its clock: once more
  int max_repeats = 3;          // of a round
  // That no round begins any more after the first, nor a repeat; empty: never.
  std::function<bool()> is_late = {};
};

struct RaceResult {
  std::vector<double> times_us;  // of each candidate: the median of its samples
  double canary_spread = 0;      // the largest of the rounds that counted
  int repeats = 0;               // rounds that did not count
};

// Successive halving (Karnin, Koren and Somekh, "Almost optimal exploration in multi-armed
// bandits", 2013): in each round the slower half drops out and the others are timed longer, until
// one is left. Rounds in which the canary's times differ too much are thrown away; the last repeat
// counts whatever they are.
RaceResult race(int candidates, const TimeRound& time_round, const RaceOptions& options = {});

double median(std::vector<double> values);  // 0 of none

}  // namespace stof::tune
