#include "tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <doctest/doctest.h>

#include "fusion/scheme_moves.hpp"
#include "stof/error.hpp"

namespace {

using stof::fusion::Scheme;
using stof::fusion::Segment;
using stof::tune::Decision;
using stof::tune::End;
using stof::tune::Outcome;
using stof::tune::Part;
using stof::tune::SearchOptions;
using stof::tune::SearchResult;
using stof::tune::Setting;
using stof::tune::Space;
using stof::tune::Trial;
using stof::tune::Trials;

Setting tile(int size) {
  return {.kernel = "kernel", .config = {{"tile", size}}};
}

std::vector<Setting> tiles_up_to(int end) {
  std::vector<Setting> settings;
  for (int i = 0; i < end; ++i) {
    settings.push_back(tile(i));
  }
  return settings;
}

// Two equal layers of four operators: a product, two cheap ones, and a norm. A problem is the
// operators of a segment within its layer; where layers meet there is no kernel.
constexpr int kLayer = 4;
constexpr int kOperators = 2 * kLayer;

stof::fusion::OperatorOrder two_layers() {
  stof::fusion::OperatorOrder order;
  for (int place = 0; place < kOperators; ++place) {
    stof::fusion::SchemeOperator& op = order.emplace_back();
    op.op = place;
    op.is_compute_intensive = place % kLayer == 0;
    if (place > 0) {
      op.reads = {place - 1};
      order[static_cast<std::size_t>(place) - 1].readers = {place};
    }
  }
  order.back().is_output = true;
  return order;
}

std::optional<std::string> problem_of(const Segment& segment) {
  const int first = segment.begin % kLayer;
  if (first + segment.size() > kLayer) {
    return std::nullopt;
  }
  std::string text;
  for (int i = 0; i < segment.size(); ++i) {
    text += "pabn"[first + i];
  }
  return text;
}

Space space_of_two_layers() {
  const auto moves = [order = two_layers()](const Scheme& scheme) {
    const auto no_escapes = [](const Segment&, int) { return false; };
    std::vector<Scheme> moved = stof::fusion::expand(order, scheme, no_escapes);
    for (const Scheme& other : stof::fusion::seize(order, scheme, no_escapes)) {
      moved.push_back(other);
    }
    return moved;
  };
  const auto settings = [](const std::string&) {
    return std::vector<Setting>{tile(1), tile(2), tile(4), tile(8), tile(16), tile(32)};
  };
  return {.proposals = {Scheme::from_text("0 1 0 1 0 1 0 1"), Scheme::from_text("00 1 0 11 0 1")},
          .moves = moves,
          .problem = problem_of,
          .few_settings = settings,
          .settings = settings};
}

// A kernel takes 4 µs and 1 µs for each operator; a tile of 4 saves a fifth, one of 32 a quarter.
// All four together are slow.
struct Stopwatch {
  std::vector<Trial> timed;
  std::set<std::string> broken;  // problems that fail

  double time_of(const Trial& trial) const {
    const auto tile = trial.setting.config.at("tile");
    const double time_us =
        4 + static_cast<double>(trial.problem.size()) + (trial.problem == "pabn" ? 50 : 0);
    return time_us * (tile == 4 ? 0.8 : tile == 32 ? 0.75 : 1);
  }

  stof::tune::Measure measure() {
    return [this](std::span<const Trial> trials) {
      std::vector<Outcome> outcomes;
      for (const Trial& trial : trials) {
        timed.push_back(trial);
        outcomes.push_back(broken.contains(trial.problem)
                               ? Outcome{.time_us = {}, .failure = "it gives wrong numbers"}
                               : Outcome{.time_us = time_of(trial), .failure = {}});
      }
      return outcomes;
    };
  }
};

std::size_t distinct(const std::vector<Trial>& trials) {
  return std::set<Trial>(trials.begin(), trials.end()).size();
}

}  // namespace

TEST_CASE("moves that are faster are kept, in equal layers without timing them again") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  const Scheme best = stof::tune::coarse_search(space_of_two_layers(), trials);
  // Every partition of a layer but into one piece is 4 µs a piece and 4 µs for the operators.
  CHECK(best.segments().size() == 4);
  CHECK(distinct(watch.timed) == watch.timed.size());
  for (const Segment& segment : best.segments()) {
    CHECK(problem_of(segment).has_value());
  }
  // Ten problems are all that there are in a layer, three settings each.
  CHECK(watch.timed.size() <= 30);
}

TEST_CASE("a scheme whose segment cannot be used is rolled back") {
  Stopwatch watch;
  watch.broken = {"pa", "pab", "ab", "abn", "bn"};
  Trials trials(watch.measure(), {}, {});
  const Scheme best = stof::tune::coarse_search(space_of_two_layers(), trials);
  CHECK(best == Scheme::from_text("0 1 0 1 0 1 0 1"));
  CHECK(trials.failed() > 0);
}

TEST_CASE("the fine stage finds settings beyond those of the coarse one") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  const SearchResult result = stof::tune::search(space_of_two_layers(), trials);
  CHECK(result.decisions.size() == 2);
  for (const Decision& decision : result.decisions) {
    CHECK(decision.setting == tile(32));
    CHECK(decision.part.count == 2);
    CHECK(*decision.before_us > *decision.time_us);
  }
  CHECK(*result.time_us == doctest::Approx(0.75 * (4 * 4 + 8)));
  CHECK(*result.before_us == doctest::Approx(8 * 5));  // each operator alone, with a tile of 1
  CHECK(distinct(watch.timed) == watch.timed.size());
}

TEST_CASE("without a fine stage the coarse one decides") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  const SearchResult result = stof::tune::search(space_of_two_layers(), trials, {.is_fine = false});
  for (const Decision& decision : result.decisions) {
    CHECK(decision.setting == tile(4));  // the third of the model's
  }
  CHECK(result.end == End::Exhausted);
  CHECK(result.time_us.has_value());
}

TEST_CASE("equal outcomes, equal search") {
  Stopwatch first;
  Stopwatch second;
  Trials first_trials(first.measure(), {}, {});
  Trials second_trials(second.measure(), {}, {});
  const SearchResult a = stof::tune::search(space_of_two_layers(), first_trials);
  const SearchResult b = stof::tune::search(space_of_two_layers(), second_trials);
  CHECK(a.scheme == b.scheme);
  REQUIRE(first.timed.size() == second.timed.size());
  for (std::size_t i = 0; i < first.timed.size(); ++i) {
    CHECK(first.timed[i].problem == second.timed[i].problem);
    CHECK(first.timed[i].setting == second.timed[i].setting);
  }
}

TEST_CASE("a second search with what the first one measured measures nothing") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  const SearchResult first = stof::tune::search(space_of_two_layers(), trials);
  const auto recall = [&](const Trial& trial) -> std::optional<Outcome> {
    const Outcome* known = trials.find(trial);
    return known == nullptr ? std::nullopt : std::optional(*known);
  };
  Trials again(watch.measure(), recall, {});
  const SearchResult second = stof::tune::search(space_of_two_layers(), again);
  CHECK(again.timed() == 0);
  CHECK(again.recalled() == trials.timed());
  CHECK(second.scheme == first.scheme);
  CHECK(second.time_us == first.time_us);
}

TEST_CASE("the budget of trials is kept to the trial, and what is best by then is the result") {
  for (int most = 0; most <= 40; ++most) {
    Stopwatch watch;
    Trials trials(watch.measure(), {}, {.max_trials = most});
    const SearchResult result = stof::tune::search(space_of_two_layers(), trials);
    CHECK(std::cmp_less_equal(watch.timed.size(), most));
    CHECK(result.scheme.has_value());
    CHECK_FALSE(result.decisions.empty());
    for (const Decision& decision : result.decisions) {
      CHECK(decision.setting.kernel == "kernel");
    }
    if (result.time_us && result.before_us) {
      CHECK(*result.time_us <= *result.before_us);
    }
  }
}

TEST_CASE("both stages end in time, and what is best by then is the result") {
  // A batch takes a second for every 16 kernels that it compiles, and a tenth for each problem.
  const auto seconds_of = [](std::span<const Trial> batch) {
    std::set<std::string> problems;
    for (const Trial& trial : batch) {
      problems.insert(trial.problem);
    }
    const auto batches_of_16 = (batch.size() + 15) / 16;
    return static_cast<double>(batches_of_16) + 0.1 * static_cast<double>(problems.size());
  };
  for (int budget = 1; budget <= 16; ++budget) {
    Stopwatch watch;
    double now = 50;
    double first_batch = 0;
    const auto measure = [&, inner = watch.measure()](std::span<const Trial> batch) {
      now += seconds_of(batch);
      first_batch = first_batch == 0 ? now - 50 : first_batch;
      return inner(batch);
    };
    Trials trials(measure, {}, {.max_seconds = static_cast<double>(budget)}, {},
                  [&] { return now; });
    const SearchResult result = stof::tune::search(space_of_two_layers(), trials);
    CHECK(trials.seconds() <= std::max(static_cast<double>(budget), first_batch));
    CHECK(result.scheme.has_value());
    CHECK((result.end == End::Seconds || trials.seconds() < budget));
    if (result.time_us && result.before_us) {
      CHECK(*result.time_us <= *result.before_us);
    }
  }
}

TEST_CASE("a stop keeps the best so far") {
  for (int batches = 0; batches <= 6; ++batches) {
    std::stop_source stop;
    Stopwatch watch;
    int left = batches;
    const auto measure = [&, inner = watch.measure()](std::span<const Trial> trials) {
      if (--left <= 0) {
        stop.request_stop();
      }
      return inner(trials);
    };
    if (batches == 0) {
      stop.request_stop();
    }
    Trials trials(measure, {}, {}, stop.get_token());
    const SearchResult result = stof::tune::search(space_of_two_layers(), trials);
    CHECK(result.scheme.has_value());
    CHECK((result.end == End::Stopped || batches > 4));
    CHECK(watch.timed.empty() == (batches == 0));
    for (const Decision& decision : result.decisions) {
      for (const Trial& trial : watch.timed) {
        if (trial.problem == decision.part.problem) {
          CHECK(*decision.time_us <= watch.time_of(trial) * 1.01);
        }
      }
    }
  }
}

TEST_CASE("the segment that gains most gets more of the next round") {
  // The settings of "steep" get faster by 5 % each, those of "flat" not at all.
  std::vector<std::string> order;
  const auto measure = [&](std::span<const Trial> trials) {
    std::vector<Outcome> outcomes;
    for (const Trial& trial : trials) {
      order.push_back(trial.problem);
      const auto place = static_cast<double>(trial.setting.config.at("tile"));
      outcomes.push_back(
          {.time_us = trial.problem == "flat" ? 10 : 10 * std::pow(0.95, place), .failure = {}});
    }
    return outcomes;
  };
  const auto settings = [](const std::string&) { return tiles_up_to(40); };
  Trials trials(measure, {}, {.max_trials = 40});
  const SearchResult result = stof::tune::fine_search({{.problem = "flat"}, {.problem = "steep"}},
                                                      settings, trials, {.small = 0});
  CHECK(result.end == End::Trials);
  const auto steep = std::ranges::count(order, "steep");
  CHECK(steep == 5 + 5 + 7 + 4);  // the budget ends within the fourth round
}

TEST_CASE("it ends when rounds gain less than one percent") {
  Stopwatch watch;
  const auto measure = [&](std::span<const Trial> trials) {
    watch.timed.insert(watch.timed.end(), trials.begin(), trials.end());
    return std::vector<Outcome>(trials.size(), {.time_us = 10, .failure = {}});
  };
  const auto settings = [](const std::string&) { return tiles_up_to(1000); };
  Trials trials(measure, {}, {});
  const SearchResult result = stof::tune::fine_search({{.problem = "p"}}, settings, trials);
  CHECK(result.end == End::Gain);
  CHECK(watch.timed.size() == 15);                     // the first round, and two that gain nothing
  CHECK(result.decisions.front().setting == tile(0));  // of equal ones what runs without a search
}

TEST_CASE("a part with few settings has all of them timed, however little it is of the whole") {
  Stopwatch watch;
  const auto measure = [&](std::span<const Trial> trials) {
    std::vector<Outcome> outcomes;
    for (const Trial& trial : trials) {
      watch.timed.push_back(trial);
      const bool is_best = trial.problem == "few" && trial.setting == tile(47);
      outcomes.push_back(
          {.time_us = trial.problem == "few" ? (is_best ? 1 : 2) : 1000, .failure = {}});
    }
    return outcomes;
  };
  const auto settings = [](const std::string& problem) {
    return tiles_up_to(problem == "few" ? 48 : 49);
  };
  Trials trials(measure, {}, {});
  const SearchResult result =
      stof::tune::fine_search({{.problem = "many"}, {.problem = "few"}}, settings, trials);
  CHECK(result.end == End::Gain);
  CHECK(result.decisions[1].setting == tile(47));
  CHECK(std::ranges::count(watch.timed, "few", &Trial::problem) == 48);
  CHECK(std::ranges::count(watch.timed, "many", &Trial::problem) == 15);
}

TEST_CASE("a part of which nothing can be timed keeps its first setting") {
  Stopwatch watch;
  watch.broken = {"p"};
  Trials trials(watch.measure(), {}, {});
  const auto settings = [](const std::string&) { return std::vector<Setting>{tile(1), tile(2)}; };
  const SearchResult result = stof::tune::fine_search({{.problem = "p"}}, settings, trials);
  CHECK(result.decisions.front().setting == tile(1));
  CHECK_FALSE(result.decisions.front().time_us.has_value());
  CHECK_FALSE(result.time_us.has_value());
  CHECK(trials.timed() == 2);
}

TEST_CASE("a search without a scheme is a bug") {
  Stopwatch watch;
  Trials trials(watch.measure(), {}, {});
  Space space = space_of_two_layers();
  space.proposals.clear();
  CHECK_THROWS_AS(stof::tune::search(space, trials), stof::InternalError);
}
