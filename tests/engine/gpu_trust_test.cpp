// Templates of a user's on a GPU: their numbers are tried before they are used.
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "gpu_testing.hpp"
#include "trust_testing.hpp"

using namespace stof;  // NOLINT(google-build-using-namespace)
using stof::testing::HostTensors;
using stof::testing::TrustScene;
using stof::testing::unit_rows_graph;
using stof::testing::unit_rows_template;

namespace {

// How far the length of a row is from 1, at most.
double worst_length(const Engine& engine, const Plan& plan) {
  HostTensors tensors;
  tensors.emplace("x", stof::testing::random_tensor({3000, 1024}, 3, DType::Float16, -1, 1));
  const auto y = stof::testing::run_plan(engine, plan, tensors).at("y");
  double worst = 0;
  for (std::size_t row = 0; row < 3000; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < 1024; ++column) {
      sum += y[row * 1024 + column] * y[row * 1024 + column];
    }
    worst = std::max(worst, std::abs(std::sqrt(sum) - 1));
  }
  return worst;
}

}  // namespace

TEST_CASE("trust: a good template is validated once, and used") {
  TrustScene scene(unit_rows_template());
  for (const int checks : {1, 0}) {
    const Engine engine = scene.engine();
    CHECK(scene.checks == checks);
    CHECK(scene.quarantined.empty());
    const Plan plan = engine.build(unit_rows_graph());
    const std::string text = plan.explain();
    CHECK(text.find("template norm/unit_rows.jinja: validated; ") != std::string::npos);
    CHECK(text.find(" us, unfused ") != std::string::npos);
    CHECK(text.find(": norm/unit_rows.jinja, grid") != std::string::npos);
    CHECK(worst_length(engine, plan) < 1e-3);
    MESSAGE(text);
  }
}

TEST_CASE("trust: wrong numbers are in quarantine, and the plan is right without them") {
  TrustScene scene(unit_rows_template("element /= length", "element /= length + 0.01f"));
  for (const int checks : {1, 0}) {
    const Engine engine = scene.engine();
    CHECK(scene.checks == checks);
    REQUIRE(scene.quarantined.size() == 1);
    CHECK(scene.quarantined[0].starts_with("norm/unit_rows.jinja: numerics: "));
    const Plan plan = engine.build(unit_rows_graph());
    CHECK(plan.explain().find(": norm/unit_rows.jinja, grid") == std::string::npos);
    CHECK(worst_length(engine, plan) < 1e-3);
    MESSAGE(scene.quarantined[0]);
  }
  // What is known to be wrong stays there, whatever would do.
  const Engine trusting = scene.engine({.trust = Trust::Compiled});
  CHECK(scene.quarantined.size() == 1);
}

TEST_CASE("trust: what was compiled without a GPU climbs on with the first one") {
  TrustScene scene(unit_rows_template());
  scene.engine({.trust = Trust::Compiled});
  CHECK(scene.checks == 1);
  scene.engine();
  CHECK(scene.checks == 1);
  scene.engine({.trust = Trust::Compiled});
  CHECK(scene.checks == 0);
}
