// What the search may try for real graphs, with costs that are simulated: no GPU is needed.
#include "engine/tuning_space.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "graph/normalise.hpp"
#include "mask/layout.hpp"
#include "models/bert.hpp"
#include "render/template_store.hpp"

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

const fusion::TemplateLibrary& templates() {
  static const fusion::TemplateLibrary library =
      fusion::read_templates(stof::render::TemplateStore::open({}).texts());
  return library;
}

const stof::base::DeviceProfile& h200() {
  return stof::base::shipped_profile("h200");
}

graph::Ir two_layers() {
  return graph::normalise_but_attention(
      models::bert({.num_hidden_layers = 2}, {.mask = stof::sliding_window(16, 16)}).ir());
}

TuningSpace make_space(const graph::Ir& ir) {
  return {ir, templates(), h200(), [](const stof::Mask& mask, const stof::mask::Extent& extent) {
            return stof::mask::build_layout(mask, extent);
          }};
}

// Of what runs without a search.
std::vector<Part> parts_of(TuningSpace& space) {
  const stof::tune::Space schemes = space.schemes();
  return stof::tune::parts_of(schemes, schemes.proposals.front()).value();
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
  TuningSpace space = make_space(ir);
  const fusion::Lowered plain = fusion::lower(ir, templates(), h200());
  std::set<std::string> problems;
  for (std::size_t i = 0; i < plain.origins.size(); ++i) {
    problems.insert(fusion::problem_key(plain.origins[i].problem));
  }
  int launches = 0;
  for (const Part& part : parts_of(space)) {
    CHECK(problems.contains(part.problem));
    launches += part.count;
    const std::vector<Setting>& settings = space.settings(part.problem);
    REQUIRE_FALSE(settings.empty());
    for (std::size_t i = 0; i < plain.origins.size(); ++i) {
      if (fusion::problem_key(plain.origins[i].problem) == part.problem) {
        CHECK(settings.front().kernel == plain.options[i].front().kernel);
        CHECK(settings.front().config == plain.options[i].front().config);
      }
    }
    CHECK(std::set<Setting>(settings.begin(), settings.end()).size() == settings.size());
  }
  CHECK(launches == static_cast<int>(plain.program.launches.size()));
}

TEST_CASE("a product has many settings, and each lowers to the kernel that it says") {
  const graph::Ir ir = two_layers();
  TuningSpace space = make_space(ir);
  std::size_t most = 0;
  for (const Part& part : parts_of(space)) {
    const std::vector<Setting>& settings = space.settings(part.problem);
    most = std::max(most, settings.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(settings.size(), 12); ++i) {
      const fusion::Lowered lowered =
          space.lower({.problem = part.problem, .setting = settings[i]});
      const bool has_it = std::ranges::any_of(lowered.options, [&](const auto& options) {
        return options.front().kernel == settings[i].kernel &&
               options.front().config == settings[i].config;
      });
      CHECK(has_it);
    }
  }
  CHECK(most >= 30);
}

TEST_CASE("both stages on a real graph: not slower than the model's choice, and it lowers") {
  const graph::Ir ir = two_layers();
  TuningSpace space = make_space(ir);
  const stof::tune::Space schemes = space.schemes();
  Trials trials(simulate, {}, {.max_trials = 300});
  const SearchResult result = stof::tune::search(schemes, trials);
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
  const fusion::Lowered lowered = fusion::lower(ir, templates(), h200(), {}, decisions);
  CHECK(lowered.scheme == result.scheme);
  std::size_t decided = 0;
  for (const fusion::LaunchOrigin& origin : lowered.origins) {
    CHECK(origin.refusal.empty());
    decided += decisions.find(origin.problem) == nullptr ? 0 : 1;
  }
  CHECK(decided == lowered.origins.size());  // segments alone are the problems of the whole
}
