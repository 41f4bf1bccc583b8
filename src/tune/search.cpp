#include "tune/search.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace stof::tune {

namespace {

// One parameter apart.
bool are_neighbours(const Setting& a, const Setting& b) {
  if (a.kernel != b.kernel || a.config.size() != b.config.size()) {
    return false;
  }
  int differences = 0;
  for (auto i = a.config.begin(), j = b.config.begin(); i != a.config.end(); ++i, ++j) {
    if (i->first != j->first) {
      return false;
    }
    differences += i->second == j->second ? 0 : 1;
  }
  return differences == 1;
}

// A problem in the fine stage.
struct Racer {
  Part part;
  std::vector<Setting> settings;
  int share = 0;
  std::vector<bool> is_tried = {};

  Trial trial(std::size_t place) const {
    return {.problem = part.problem, .setting = settings[place]};
  }

  std::optional<std::size_t> next_by_model() const {
    const auto next = std::ranges::find(is_tried, false);
    return next == is_tried.end() ? std::nullopt : std::optional(next - is_tried.begin());
  }

  std::optional<std::size_t> next_beside(std::size_t place) const {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (!is_tried[i] && are_neighbours(settings[i], settings[place])) {
        return i;
      }
    }
    return std::nullopt;
  }

  // The settings of the next round: in turn the model's next and one beside the best.
  std::vector<Trial> take(const std::optional<Trials::Best>& best) {
    std::vector<Trial> taken;
    for (int i = 0; i < share; ++i) {
      std::optional<std::size_t> next;
      if (best && i % 2 == 1) {
        next = next_beside(best->place);
      }
      if (!next) {
        next = next_by_model();
      }
      if (!next) {
        break;
      }
      is_tried[*next] = true;
      taken.push_back(trial(*next));
    }
    return taken;
  }
};

class Fine {
 public:
  Fine(const std::vector<Part>& parts, const SettingsOf& settings, Trials& trials,
       const SearchOptions& options)
      : trials_(trials), options_(options) {
    for (const Part& part : parts) {
      Racer& racer =
          racers_.emplace_back(Racer{.part = part, .settings = settings(part.problem), .share = 0});
      racer.share = first_share(racer);
      for (std::size_t place = 0; place < racer.settings.size(); ++place) {
        racer.is_tried.push_back(trials_.find(racer.trial(place)) != nullptr);
      }
    }
  }

  End run() {
    int quiet_rounds = 0;
    while (true) {
      if (const std::optional<End> end = trials_.end()) {
        return *end;
      }
      const std::vector<Trial> round = next_round();
      if (round.empty()) {
        return End::Exhausted;
      }
      const std::vector<double> before = times();
      trials_.time(round);
      const double gain = reward(before, times());
      quiet_rounds = gain < options_.least_gain ? quiet_rounds + 1 : 0;
      if (quiet_rounds >= options_.patience) {
        return trials_.end().value_or(End::Gain);
      }
    }
  }

  std::vector<Decision> decisions() const {
    std::vector<Decision> decisions;
    for (const Racer& racer : racers_) {
      decisions.push_back({.part = racer.part, .setting = {}, .time_us = {}, .before_us = {}});
      Decision& decision = decisions.back();
      if (racer.settings.empty()) {
        continue;
      }
      decision.setting = racer.settings.front();
      if (const auto best = trials_.best(racer.part.problem, racer.settings)) {
        decision.setting = racer.settings[best->place];
        decision.time_us = best->time_us;
      }
      if (const Outcome* first = trials_.find(racer.trial(0))) {
        decision.before_us = first->time_us;
      }
    }
    return decisions;
  }

 private:
  int first_share(const Racer& racer) const {
    const int count = static_cast<int>(racer.settings.size());
    return options_.first_share > 0 && count <= options_.small ? count : options_.first_share;
  }

  // Parts take turns, so that a budget that ends within a round leaves each with some.
  std::vector<Trial> next_round() {
    std::vector<std::vector<Trial>> taken;
    std::size_t longest = 0;
    for (Racer& racer : racers_) {
      taken.push_back(racer.take(trials_.best(racer.part.problem, racer.settings)));
      longest = std::max(longest, taken.back().size());
    }
    std::vector<Trial> round;
    for (std::size_t i = 0; i < longest; ++i) {
      for (std::vector<Trial>& trials : taken) {
        if (i < trials.size()) {
          round.push_back(std::move(trials[i]));
        }
      }
    }
    return round;
  }

  // Of all segments of each part; 0 where nothing was timed.
  std::vector<double> times() const {
    std::vector<double> times;
    for (const Racer& racer : racers_) {
      const auto best = trials_.best(racer.part.problem, racer.settings);
      times.push_back(best ? racer.part.count * best->time_us : 0);
    }
    return times;
  }

  // Gives the part that gained most its reward. Returns what all gained together, as a share; all
  // of it in a round that times a part for the first time.
  double reward(const std::vector<double>& before, const std::vector<double>& after) {
    double sum = 0;
    double gained = 0;
    double most = 0;
    Racer* winner = nullptr;
    bool is_first = false;
    for (std::size_t i = 0; i < racers_.size(); ++i) {
      is_first = is_first || (before[i] == 0 && after[i] > 0);
      const double gain = before[i] == 0 ? 0 : before[i] - after[i];
      sum += before[i];
      gained += gain;
      if (gain > most) {
        most = gain;
        winner = &racers_[i];
      }
    }
    if (winner != nullptr) {
      winner->share += options_.reward;
    }
    return is_first || sum == 0 ? 1 : gained / sum;
  }

  Trials& trials_;
  const SearchOptions& options_;
  std::vector<Racer> racers_;
};

std::optional<double> sum(const std::vector<Decision>& decisions,
                          std::optional<double> Decision::*time_us) {
  double sum = 0;
  for (const Decision& decision : decisions) {
    if (!(decision.*time_us)) {
      return std::nullopt;
    }
    sum += decision.part.count * *(decision.*time_us);
  }
  return sum;
}

// Of the scheme that runs without a search, each problem with its first setting.
std::optional<double> time_before(const Space& space, const Trials& trials) {
  const auto parts = parts_of(space, space.proposals.front());
  if (!parts) {
    return std::nullopt;
  }
  double time_us = 0;
  for (const Part& part : *parts) {
    const std::vector<Setting> settings = space.few_settings(part.problem);
    const Outcome* first =
        settings.empty() ? nullptr
                         : trials.find({.problem = part.problem, .setting = settings.front()});
    if (first == nullptr || !first->time_us) {
      return std::nullopt;
    }
    time_us += part.count * *first->time_us;
  }
  return time_us;
}

}  // namespace

SearchResult fine_search(const std::vector<Part>& parts, const SettingsOf& settings, Trials& trials,
                         const SearchOptions& options) {
  Fine fine(parts, settings, trials, options);
  SearchResult result;
  result.end = fine.run();
  result.decisions = fine.decisions();
  result.time_us = sum(result.decisions, &Decision::time_us);
  result.before_us = sum(result.decisions, &Decision::before_us);
  return result;
}

SearchResult search(const Space& space, Trials& trials, const SearchOptions& options) {
  trials.limit(options.is_fine ? options.coarse_share : 1);
  const fusion::Scheme scheme = coarse_search(space, trials, options);
  trials.limit(1);
  const std::vector<Part> parts = parts_of(space, scheme).value_or(std::vector<Part>());
  SearchOptions fine = options;
  if (!options.is_fine) {
    fine.first_share = 0;  // decides by what the coarse stage timed
  }
  SearchResult result = fine_search(parts, space.settings, trials, fine);
  result.scheme = scheme;
  result.before_us = time_before(space, trials);
  return result;
}

}  // namespace stof::tune
