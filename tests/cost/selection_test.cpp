// The choice of an attention kernel, replayed on what tools/bench/selection measured on an H200.
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "../../tools/bench/selection_record.hpp"
#include "../../tools/bench/selection_replay.hpp"
#include "render/template_store.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

const json& recorded() {
  static const json all =
      json::parse(std::ifstream(STOF_SOURCE_DIR "/tools/bench/results/nvidia-h200/selection.json"));
  return all;
}

const bench::SelectionReplay& replay() {
  static const fusion::TemplateLibrary templates =
      fusion::read_templates(render::TemplateStore::open({}).texts());
  static const bench::SelectionReplay all(bench::selection_from_json(recorded()), templates,
                                          base::shipped_profile("h200"));
  return all;
}

const json& summary() {
  return recorded().at("summary");
}

}  // namespace

TEST_CASE("the choice of attention is as good as recorded, and as it has to be") {
  const bench::Regret regret = replay().model({});
  const json& before = summary().at("regret").at("model");
  CHECK(regret.cases >= 200);
  CHECK(regret.mean < before.at("mean").get<double>() + 0.002);
  CHECK(regret.percentile_95 < before.at("percentile_95").get<double>() + 0.01);
  CHECK(regret.mean < 0.03);
  CHECK(regret.percentile_95 < 0.1);
}

TEST_CASE("families of masks that nothing was fitted to are chosen for as well") {
  CHECK(replay().families().size() >= 8);
  double sum = 0;
  int cases = 0;
  for (const std::string& family : replay().families()) {
    INFO(family);
    const json& before = summary().at("families").at(family);
    const bench::Regret regret =
        replay().model(bench::with_attention_coefficients(before.at("coefficients")), family);
    CHECK(regret.cases == before.at("regret").at("cases"));
    CHECK(regret.mean < before.at("regret").at("mean").get<double>() + 0.005);
    sum += regret.mean * regret.cases;
    cases += regret.cases;
  }
  CHECK(sum / cases < 0.03);
}

TEST_CASE("no simple rule comes near to the model") {
  const double mean = replay().model({}).mean;
  CHECK(replay().paper().mean > 5 * mean);
  CHECK(replay().always_blocks().mean > 2 * mean);
  CHECK(replay().always_rows().mean > 5 * mean);
  CHECK(replay().model_of_best_kind({}).mean <= mean);
}

TEST_CASE("times of attention are predicted within 10 % in the mean") {
  const bench::PredictionError error = replay().error({});
  CHECK(error.candidates > 3000);
  CHECK(error.mean < 0.1);
}

TEST_CASE("records are read as they are written, and what is no record is refused") {
  const std::vector<bench::SelectionMask> masks = bench::selection_from_json(recorded());
  const json written = to_json(masks);
  CHECK(written.at("masks") == recorded().at("masks"));
  CHECK(written.at("settings") == recorded().at("settings"));
  CHECK_THROWS_AS(bench::selection_from_json(json::object()), json::exception);
  const json coefficients = bench::attention_coefficients({});
  CHECK(bench::attention_coefficients(bench::with_attention_coefficients(coefficients)) ==
        coefficients);
}
