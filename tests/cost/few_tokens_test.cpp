// The model's choice among settings that were timed on an H200 with 64 to 256 tokens
// (fixtures/h200_few_tokens.json, by bench.choice).
#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cost/model.hpp"
#include "fusion/template_library.hpp"
#include "render/template_store.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)

namespace {

const contract::TemplateContract& contract_named(const std::string& name) {
  static const fusion::TemplateLibrary library =
      fusion::read_templates(render::TemplateStore::open({}).texts());
  const auto found = std::ranges::find_if(
      library, [&](const auto& kernel) { return kernel.contract.name == name; });
  REQUIRE(found != library.end());
  return found->contract;
}

struct TimedChoice {
  double chosen_us = 0;
  double fastest_us = std::numeric_limits<double>::infinity();
};

// Of the settings that were timed and that the model lists, what it takes to be the fastest.
TimedChoice choose(const nlohmann::json& problem, const cost::Model& model) {
  TimedChoice choice;
  cost::Prediction least;
  for (const nlohmann::json& timed : problem.at("times")) {
    const contract::TemplateContract& contract = contract_named(timed[0]);
    const kernel::KernelConfig config = timed[1];
    const double time_us = timed[2];
    contract::ContractScope scope{
        .dims = problem.at("dims"), .attributes = {}, .dtypes = {}, .device = {}, .config = {}};
    for (const auto& [symbol, dtypes] : contract.dtypes) {
      scope.dtypes[symbol] = DType::Float16;
    }
    for (const auto& [name, value] : model.device().scalars()) {
      scope.device["device." + name] = value;
    }
    const cost::Problem asked = cost::make_problem(
        contract, scope,
        {.transcendentals = problem.at("transcendentals"), .bytes = problem.at("bytes")},
        std::numeric_limits<double>::infinity());
    choice.fastest_us = std::min(choice.fastest_us, time_us);
    const std::vector<kernel::KernelConfig> listed = model.settings(asked);
    if (std::ranges::find(listed, config) == listed.end()) {
      continue;
    }
    const cost::Prediction time = model.predict(asked, config);
    if (choice.chosen_us == 0 || is_faster(time, least)) {
      choice.chosen_us = time_us;
      least = time;
    }
  }
  return choice;
}

}  // namespace

TEST_CASE("few tokens: choices take 3 % more than the fastest settings in the mean, 15 % at most") {
  std::ifstream file(STOF_SOURCE_DIR "/tests/cost/fixtures/h200_few_tokens.json");
  const nlohmann::json recorded = nlohmann::json::parse(file);
  const cost::Model model(base::shipped_profile("h200"));
  double regrets = 0;
  for (const nlohmann::json& problem : recorded.at("problems")) {
    const TimedChoice choice = choose(problem, model);
    INFO(problem.at("dims").dump());
    CHECK(choice.chosen_us >= choice.fastest_us);
    CHECK(choice.chosen_us <= 1.15 * choice.fastest_us);
    regrets += choice.chosen_us / choice.fastest_us - 1;
  }
  const auto count = static_cast<double>(recorded.at("problems").size());
  MESSAGE(count, " problems, regret ", regrets / count);
  CHECK(count >= 30);
  CHECK(regrets / count <= 0.03);
}
