// What a calibration times, without a GPU.
#include "engine/calibration.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "fusion/lowering_testing.hpp"
#include "mask/layout.hpp"
#include "tune/fit_rates.hpp"

namespace {

const std::vector<stof::engine::Probe>& probes() {
  static const std::vector<stof::engine::Probe> all = stof::engine::calibration_probes(
      stof::base::shipped_profile("h200"), stof::testing::shipped_templates(),
      [](const stof::Mask& mask, const stof::mask::Extent& extent) {
        return stof::mask::build_layout(mask, extent);
      });
  return all;
}

}  // namespace

TEST_CASE("a calibration predicts what lowering predicts, and times nothing that is never chosen") {
  CHECK(probes().size() >= 13);
  CHECK(probes().size() <= 40);
  for (const stof::engine::Probe& probe : probes()) {
    INFO(probe.name);
    CHECK(probe.predicted_us(stof::base::shipped_profile("h200")) ==
          doctest::Approx(probe.trial.setting.predicted_us).epsilon(0.001));
  }
}

TEST_CASE("a calibration finds rates that are a third off") {
  const stof::base::DeviceProfile start = stof::base::shipped_profile("h200");
  for (const stof::tune::FittedRate& fitted_rate : stof::tune::kFittedRates) {
    INFO(fitted_rate.name);
    double stof::base::DeviceProfile::*const rate = fitted_rate.member;
    stof::base::DeviceProfile truth = start;
    truth.*rate *= 1.3;
    std::vector<stof::tune::TimedKernel> timed;
    double differs = 0;
    for (const stof::engine::Probe& probe : probes()) {
      timed.push_back({.name = probe.name,
                       .measured_us = probe.predicted_us(truth),
                       .predicted_us = probe.predicted_us});
      differs += std::abs(probe.predicted_us(truth) / probe.predicted_us(start) - 1);
    }
    const stof::tune::FittedRates fitted = stof::tune::fit_rates(start, timed);
    if (differs > 0.1) {
      CHECK(fitted.profile.*rate == doctest::Approx(truth.*rate).epsilon(0.1));
    }
    CHECK(fitted.error_after <= fitted.error_before);
  }
}
