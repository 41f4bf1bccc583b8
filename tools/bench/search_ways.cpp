#include "search_ways.hpp"

#include <random>
#include <utility>

namespace stof::bench {

namespace {

std::vector<tune::Part> parts_of_first(const tune::Space& space) {
  return tune::parts_of(space, space.proposals.front()).value_or(std::vector<tune::Part>());
}

tune::SearchResult with_scheme_of_first(const tune::Space& space, tune::SearchResult result) {
  result.scheme = space.proposals.front();
  return result;
}

// What the fine stage decides on what was timed already.
tune::SearchResult best_of_timed(const tune::Space& space, tune::Trials& trials) {
  tune::SearchOptions options;
  options.first_share = 0;
  return with_scheme_of_first(
      space, tune::fine_search(parts_of_first(space), space.settings, trials, options));
}

// Nothing where either was not timed, or could not be used.
std::optional<double> share_of_winner(const tune::Trials& trials, const tune::Part& part,
                                      const std::vector<tune::Setting>& settings,
                                      const Found& other) {
  const auto best = trials.best(part.problem, settings);
  const auto winner = other.winners.find(part.problem);
  const tune::Outcome* const outcome =
      winner == other.winners.end()
          ? nullptr
          : trials.find({.problem = part.problem, .setting = winner->second});
  return best && outcome != nullptr && outcome->time_us
             ? std::optional(best->time_us / *outcome->time_us)
             : std::nullopt;
}

}  // namespace

SearchLab::Search no_search() {
  return [](tune::Space&, tune::Trials&) { return tune::SearchResult(); };
}

SearchLab::Search coarse_alone() {
  return [](tune::Space& space, tune::Trials& trials) {
    tune::SearchOptions options;
    options.is_fine = false;
    return tune::search(space, trials, options);
  };
}

SearchLab::Search fine_alone() {
  return [](tune::Space& space, tune::Trials& trials) {
    return with_scheme_of_first(space,
                                tune::fine_search(parts_of_first(space), space.settings, trials));
  };
}

SearchLab::Search at_random(std::int64_t count) {
  return [count](tune::Space& space, tune::Trials& trials) {
    std::mt19937_64 random(11);
    std::vector<tune::Trial> drawn;
    const std::vector<tune::Part> parts = parts_of_first(space);
    for (std::int64_t i = 0; i < count && !parts.empty(); ++i) {
      const tune::Part& part = parts[static_cast<std::size_t>(i) % parts.size()];
      const auto settings = space.settings(part.problem);
      drawn.push_back({.problem = part.problem, .setting = settings[random() % settings.size()]});
    }
    trials.time(drawn);
    return best_of_timed(space, trials);
  };
}

SearchLab::Search exhaustive(std::size_t most_settings, const Found& other,
                             std::vector<double>& shares) {
  return [most_settings, &other, &shares](tune::Space& space, tune::Trials& trials) {
    for (const tune::Part& part : parts_of_first(space)) {
      const auto settings = space.settings(part.problem);
      if (settings.size() > most_settings) {
        continue;
      }
      std::vector<tune::Trial> all;
      all.reserve(settings.size());
      for (const tune::Setting& setting : settings) {
        all.push_back({.problem = part.problem, .setting = setting});
      }
      trials.time(all);
      if (const auto share = share_of_winner(trials, part, settings, other)) {
        shares.push_back(*share);
      }
    }
    return best_of_timed(space, trials);
  };
}

}  // namespace stof::bench
