#include "tune/fit_rates.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "error_of.hpp"

namespace stof::tune {
namespace {

using base::DeviceProfile;

// Bytes of DRAM and L2 and operations of the tensor cores, the longest of which is what it takes.
TimedKernel kernel(double dram_bytes, double l2_bytes, double flops, const DeviceProfile& truth,
                   double noise) {
  const auto time = [=](const DeviceProfile& profile) {
    return profile.programmatic_step_us +
           std::max({dram_bytes / (profile.dram_gbps * 1e3), l2_bytes / (profile.l2_gbps * 1e3),
                     flops / (profile.tensor_tflops * 1e6)});
  };
  return {.name = "kernel", .measured_us = time(truth) * noise, .predicted_us = time};
}

std::vector<TimedKernel> kernels(const DeviceProfile& truth, double spread, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, spread);
  std::vector<TimedKernel> kernels;
  for (const double size : {1e4, 1e6, 1e8, 1e9}) {
    kernels.push_back(kernel(size, 0, 0, truth, std::exp(noise(random))));
    kernels.push_back(kernel(0, size, 0, truth, std::exp(noise(random))));
    kernels.push_back(kernel(0, 0, 200 * size, truth, std::exp(noise(random))));
  }
  return kernels;
}

TEST_CASE("fit_rates: finds the rates of a GPU that is not what its profile says") {
  const DeviceProfile start = base::shipped_profile("h200");
  DeviceProfile truth = start;
  truth.dram_gbps *= 0.6;
  truth.l2_gbps *= 1.7;
  truth.tensor_tflops *= 0.8;
  truth.programmatic_step_us *= 2;
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    const FittedRates fitted = fit_rates(start, kernels(truth, 0.03, seed));
    CHECK(fitted.error_before > 0.2);
    CHECK(fitted.error_after < 0.05);
    CHECK(fitted.profile.dram_gbps == doctest::Approx(truth.dram_gbps).epsilon(0.08));
    CHECK(fitted.profile.l2_gbps == doctest::Approx(truth.l2_gbps).epsilon(0.08));
    CHECK(fitted.profile.tensor_tflops == doctest::Approx(truth.tensor_tflops).epsilon(0.08));
    CHECK(fitted.profile.programmatic_step_us ==
          doctest::Approx(truth.programmatic_step_us).epsilon(0.08));
    // No kernel says anything of these.
    CHECK(fitted.profile.mma_sync_tflops == start.mma_sync_tflops);
    CHECK(fitted.profile.kernel_step_us == start.kernel_step_us);
    CHECK(fitted.profile.fma_tflops == start.fma_tflops);
  }
}

TEST_CASE("fit_rates: a profile that is right stays, and no rate goes further than kMostFit") {
  const DeviceProfile start = base::shipped_profile("h200");
  const FittedRates same = fit_rates(start, kernels(start, 0, 1));
  CHECK(same.profile == start);
  CHECK(same.error_after == 0);
  CHECK(fit_rates(start, {}).profile == start);
  DeviceProfile absurd = start;
  absurd.dram_gbps /= 100;
  const FittedRates bounded = fit_rates(start, kernels(absurd, 0, 1));
  CHECK(bounded.profile.dram_gbps >= start.dram_gbps / kMostFit * 0.999);
}

TEST_CASE("fit_rates: a kernel that takes no time is an error") {
  const DeviceProfile start = base::shipped_profile("h200");
  const std::vector<TimedKernel> wrong = {
      {.name = "idle", .measured_us = 0, .predicted_us = [](const DeviceProfile&) { return 1.0; }}};
  CHECK(test::error_of<InternalError>([&] {
          fit_rates(start, wrong);
        }).find("idle takes no time") != std::string::npos);
}

}  // namespace
}  // namespace stof::tune
