#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "tune/search.hpp"

namespace stof::tune {

using fusion::Scheme;
using fusion::Segment;

namespace {

class Coarse {
 public:
  Coarse(const Space& space, Trials& trials, const SearchOptions& options)
      : space_(space), trials_(trials), options_(options) {}

  Scheme run() {
    time(space_.proposals);
    Scheme best = space_.proposals.front();
    std::optional<double> least = time_of(counts(best));
    for (const Scheme& proposal : space_.proposals) {
      const std::optional<double> time_us = time_of(counts(proposal));
      if (time_us && (!least || *time_us < *least * (1 - Trials::kTie))) {
        best = proposal;
        least = time_us;
      }
    }
    for (std::optional<Scheme> next = best; next; next = better_neighbour(best)) {
      best = *std::move(next);
    }
    return best;
  }

 private:
  struct Problem {
    std::string text;
    std::vector<Setting> settings;
    bool is_timed = false;
  };
  using Counts = std::map<int, int>;  // problem -> segments; -1: those that nothing takes

  // The first move of all that makes the scheme faster.
  std::optional<Scheme> better_neighbour(const Scheme& scheme) {
    const Counts before = counts(scheme);
    for (const Scheme& moved : space_.moves(scheme)) {
      if (trials_.end()) {
        return std::nullopt;
      }
      if (!tried_.insert({scheme, moved}).second) {
        continue;
      }
      const Counts after = counts(moved);
      if (after.contains(-1)) {
        continue;
      }
      time(std::span(&moved, 1));
      if (is_faster(after, before)) {
        return moved;
      }
    }
    return std::nullopt;
  }

  // By what differs, since a move changes a small part of a graph.
  bool is_faster(const Counts& after, const Counts& before) const {
    const std::optional<double> gone = time_of(without(before, after));
    const std::optional<double> come = time_of(without(after, before));
    return come && gone && *come < *gone * (1 - Trials::kTie);
  }

  static Counts without(const Counts& some, const Counts& others) {
    Counts rest;
    for (const auto& [problem, count] : some) {
      const auto other = others.find(problem);
      const int left = count - (other == others.end() ? 0 : other->second);
      if (left > 0) {
        rest.emplace(problem, left);
      }
    }
    return rest;
  }

  Counts counts(const Scheme& scheme) {
    Counts counts;
    for (const Segment& segment : scheme.segments()) {
      ++counts[problem_of(segment)];
    }
    return counts;
  }

  int problem_of(const Segment& segment) {
    const auto [known, is_new] = by_segment_.try_emplace({segment.begin, segment.end}, -1);
    if (is_new) {
      if (const std::optional<std::string> text = space_.problem(segment)) {
        const auto [place, is_first] =
            by_text_.try_emplace(*text, static_cast<int>(problems_.size()));
        if (is_first) {
          problems_.push_back({.text = *text, .settings = few_settings(*text)});
        }
        known->second = place->second;
      }
    }
    return known->second;
  }

  std::vector<Setting> few_settings(const std::string& problem) const {
    std::vector<Setting> settings = space_.few_settings(problem);
    const auto count = static_cast<std::size_t>(std::max(options_.coarse_settings, 1));
    settings.resize(std::min(settings.size(), count));
    return settings;
  }

  void time(std::span<const Scheme> schemes) {
    std::vector<Trial> trials;
    for (const Scheme& scheme : schemes) {
      for (const auto& [number, count] : counts(scheme)) {
        if (number < 0 || std::exchange(problems_[at(number)].is_timed, true)) {
          continue;
        }
        const Problem& problem = problems_[at(number)];
        for (const Setting& setting : problem.settings) {
          trials.push_back({.problem = problem.text, .setting = setting});
        }
      }
    }
    trials_.time(trials);
  }

  // Nothing where a problem could not be timed.
  std::optional<double> time_of(const Counts& counts) const {
    double sum = 0;
    for (const auto& [number, count] : counts) {
      if (number < 0) {
        return std::nullopt;
      }
      const Problem& problem = problems_[at(number)];
      const auto best = trials_.best(problem.text, problem.settings);
      if (!best) {
        return std::nullopt;
      }
      sum += count * best->time_us;
    }
    return sum;
  }

  static std::size_t at(int number) { return static_cast<std::size_t>(number); }

  const Space& space_;
  Trials& trials_;
  const SearchOptions& options_;
  std::vector<Problem> problems_;
  std::map<std::string, int> by_text_;
  std::map<std::pair<int, int>, int> by_segment_;
  std::set<std::pair<Scheme, Scheme>> tried_;
};

}  // namespace

Scheme coarse_search(const Space& space, Trials& trials, const SearchOptions& options) {
  STOF_CHECK(!space.proposals.empty()) << "tune: no scheme is proposed";
  return Coarse(space, trials, options).run();
}

std::optional<std::vector<Part>> parts_of(const Space& space, const Scheme& scheme) {
  std::vector<Part> parts;
  for (const Segment& segment : scheme.segments()) {
    const std::optional<std::string> problem = space.problem(segment);
    if (!problem) {
      return std::nullopt;
    }
    const auto known = std::ranges::find(parts, *problem, &Part::problem);
    if (known == parts.end()) {
      parts.push_back({.problem = *problem, .count = 1});
    } else {
      ++known->count;
    }
  }
  return parts;
}

}  // namespace stof::tune
