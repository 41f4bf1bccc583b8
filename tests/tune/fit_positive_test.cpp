#include "tune/fit_positive.hpp"

#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "stof/error.hpp"

using stof::tune::fit_positive;

namespace {

// a x + b / x at some x, beside what 3 x + 0.5 / x is, off by `noise`.
struct Curve {
  std::vector<double> x;
  std::vector<double> measured;

  explicit Curve(double noise) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (double at = 0.05; at < 20; at *= 1.2) {
      x.push_back(at);
      measured.push_back((3 * at + 0.5 / at) * std::exp(noise * normal(random)));
    }
  }

  std::vector<double> errors(const std::vector<double>& values) const {
    std::vector<double> errors;
    for (std::size_t i = 0; i < x.size(); ++i) {
      errors.push_back(std::log((values[0] * x[i] + values[1] / x[i]) / measured[i]));
    }
    return errors;
  }
};

}  // namespace

TEST_CASE("numbers are found from far away, with noise nearly so") {
  for (const double noise : {0.0, 0.05}) {
    const Curve curve(noise);
    const auto fitted =
        fit_positive({100, 0.01}, [&](const auto& values) { return curve.errors(values); });
    CHECK(fitted[0] == doctest::Approx(3).epsilon(0.01 + noise));
    CHECK(fitted[1] == doctest::Approx(0.5).epsilon(0.01 + noise));
  }
}

TEST_CASE("an observation that is far off has little weight") {
  Curve curve(0);
  curve.measured[3] *= 20;
  const auto fitted =
      fit_positive({1, 1}, [&](const auto& values) { return curve.errors(values); });
  CHECK(fitted[0] == doctest::Approx(3).epsilon(0.05));
  CHECK(fitted[1] == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("what nothing depends on stays, and nothing goes farther than it may") {
  const Curve curve(0);
  const auto fitted = fit_positive(
      {1, 1, 7}, [&](const auto& values) { return curve.errors(values); }, {.most = 2});
  CHECK(fitted[0] == doctest::Approx(2).epsilon(0.01));
  CHECK(fitted[1] >= 0.499);
  CHECK(fitted[2] == doctest::Approx(7));
}

TEST_CASE("a number that is not above 0 is refused") {
  CHECK_THROWS_AS(fit_positive({1, 0}, [](const auto&) { return std::vector<double>{0}; }),
                  stof::InternalError);
}
