// What the search may try for real graphs, with costs that are simulated: no GPU is needed.
#include "engine/tuning_space.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/hash.hpp"
#include "fusion/lowering_testing.hpp"
#include "mask/layout.hpp"

namespace {

using stof::engine::TuningSpace;
using stof::tune::Outcome;
using stof::tune::Part;
using stof::tune::SearchResult;
using stof::tune::Setting;
using stof::tune::Trial;
using stof::tune::Trials;
namespace fusion = stof::fusion;
namespace graph = stof::graph;

const stof::base::DeviceProfile& h200() {
  return stof::base::shipped_profile("h200");
}

graph::Ir two_layers() {
  return graph::normalise_but_attention(
      models::bert({.num_hidden_layers = 2}, {.mask = stof::sliding_window(16, 16)}).ir());
}

TuningSpace make_space(const graph::Ir& ir) {
  return {ir, stof::testing::shipped_templates(), h200(),
          [](const stof::Mask& mask, const stof::mask::Extent& extent) {
            return stof::mask::build_layout(mask, extent);
          }};
}

// What the model says, up to a third off.
std::vector<Outcome> simulate(std::span<const Trial> trials) {
  std::vector<Outcome> outcomes;
  for (const Trial& trial : trials) {
    std::string text = trial.problem + trial.setting.kernel;
    for (const auto& [name, value] : trial.setting.config) {
      text += fmt::format(" {} {}", name, value);
    }
    const double share = std::stoi(stof::base::hash(text).hex().substr(0, 2), nullptr, 16) / 255.0;
    outcomes.push_back(
        {.time_us = trial.setting.predicted_us * (0.67 + 0.33 * share), .failure = {}});
  }
  return outcomes;
}

}  // namespace

TEST_CASE("the problems of equal layers are one, and what runs without a search is first") {
  const graph::Ir ir = two_layers();
  TuningSpace tuning = make_space(ir);
  const stof::tune::Space space = tuning.space();
  const fusion::Lowered plain = fusion::lower(ir, stof::testing::shipped_templates(), h200());
  CHECK(space.proposals.front() == plain.scheme);
  std::map<std::string, fusion::Option> running;
  for (std::size_t i = 0; i < plain.origins.size(); ++i) {
    running.emplace(fusion::problem_key(plain.origins[i].problem), plain.options[i].front());
  }
  const auto parts = stof::tune::parts_of(space, space.proposals.front());
  REQUIRE(parts.has_value());
  std::size_t most = 0;
  int segments = 0;
  for (const Part& part : *parts) {
    segments += part.count;
    REQUIRE(running.contains(part.problem));
    const fusion::Option& option = running.at(part.problem);
    const std::vector<Setting> settings = space.settings(part.problem);
    REQUIRE_FALSE(settings.empty());
    CHECK(settings.front() == Setting{.kernel = option.kernel, .config = option.config});
    CHECK(space.few_settings(part.problem).front() == settings.front());
    CHECK(std::set<Setting>(settings.begin(), settings.end()).size() == settings.size());
    most = std::max(most, settings.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(settings.size(), 8); ++i) {
      const fusion::Lowered lowered =
          tuning.lower({.problem = part.problem, .setting = settings[i]});
      const bool has_it = std::ranges::any_of(lowered.options, [&](const auto& options) {
        return options.front().kernel == settings[i].kernel &&
               options.front().config == settings[i].config;
      });
      CHECK(has_it);
    }
  }
  CHECK(segments == static_cast<int>(plain.groups.size()));
  CHECK(parts->size() < plain.groups.size());
  CHECK(most >= 30);
}

TEST_CASE("attentions whose masks arrive have problems, with tiles and in scores") {
  for (const auto& [length, layouts] : {std::pair(128, 0), std::pair(2048, 1)}) {
    stof::Graph built("attention");
    const stof::Tensor q = built.input("q", {1, 12, length, 64}, stof::DType::Float16);
    const stof::MaskInput mask = built.mask_input("m", {1, 1, length, length}, {});
    built.output("y", built.attention(built.gelu(q), q, q, {.mask_input = mask}));
    const graph::Ir ir = graph::normalise_but_attention(built.ir());
    const fusion::Lowered plain = fusion::lower(ir, stof::testing::shipped_templates(), h200());
    REQUIRE(static_cast<int>(plain.program.layouts.size()) == layouts);
    TuningSpace tuning = make_space(ir);
    const stof::tune::Space space = tuning.space();
    const auto parts = stof::tune::parts_of(space, space.proposals.front());
    REQUIRE(parts.has_value());
    for (const Part& part : *parts) {
      CHECK(std::ranges::any_of(plain.origins, [&](const fusion::LaunchOrigin& origin) {
        return fusion::problem_key(origin.problem) == part.problem;
      }));
    }
  }
}

TEST_CASE("both stages on a real graph: not slower than the model's choice, and it lowers") {
  const graph::Ir ir = two_layers();
  TuningSpace tuning = make_space(ir);
  const stof::tune::Space space = tuning.space();
  Trials trials(simulate, {}, {.max_trials = 300});
  const SearchResult result = stof::tune::search(space, trials);
  REQUIRE(result.time_us.has_value());
  REQUIRE(result.before_us.has_value());
  CHECK(*result.time_us < *result.before_us);
  CHECK(trials.timed() <= 300);

  fusion::Decisions decisions{.scheme = result.scheme, .settings = {}, .lists_all = false};
  for (const auto& decision : result.decisions) {
    decisions.settings.emplace(
        decision.part.problem,
        fusion::Setting{.kernel = decision.setting.kernel, .config = decision.setting.config});
  }
  const fusion::Lowered lowered =
      fusion::lower(ir, stof::testing::shipped_templates(), h200(), {}, decisions);
  CHECK(lowered.scheme == result.scheme);
  std::size_t decided = 0;
  for (const fusion::LaunchOrigin& origin : lowered.origins) {
    CHECK(origin.refusal.empty());
    decided += decisions.find(origin.problem) == nullptr ? 0 : 1;
  }
  CHECK(decided == lowered.origins.size());  // segments alone are the problems of the whole
}
