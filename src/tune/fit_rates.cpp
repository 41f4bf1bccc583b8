#include "tune/fit_rates.hpp"

#include <cmath>

#include "base/check.hpp"

namespace stof::tune {

namespace {

using base::DeviceProfile;

double mean_error(const DeviceProfile& profile, std::span<const TimedKernel> kernels) {
  double sum = 0;
  for (const TimedKernel& kernel : kernels) {
    sum += std::abs(std::log(kernel.predicted_us(profile) / kernel.measured_us));
  }
  return kernels.empty() ? 0 : sum / static_cast<double>(kernels.size());
}

}  // namespace

FittedRates fit_rates(const DeviceProfile& start, std::span<const TimedKernel> kernels) {
  for (const TimedKernel& kernel : kernels) {
    STOF_CHECK(kernel.measured_us > 0) << "calibration: " << kernel.name << " takes no time";
  }
  // A step has to bring this much, so that what no kernel depends on stays where it is.
  constexpr double kLeastGain = 1e-4;
  constexpr double kFirstStep = 0.5, kLastStep = 0.01;  // natural logarithms
  FittedRates fitted{
      .profile = start, .error_before = mean_error(start, kernels), .error_after = 0};
  double error = fitted.error_before;
  for (double step = kFirstStep; step > kLastStep; step /= 2) {
    bool is_better = true;
    while (is_better) {
      is_better = false;
      for (const auto& [name, rate] : kFittedRates) {
        for (const double sign : {1.0, -1.0}) {
          DeviceProfile moved = fitted.profile;
          moved.*rate *= std::exp(sign * step);
          if (std::abs(std::log(moved.*rate / (start.*rate))) > std::log(kMostFit)) {
            continue;
          }
          const double moved_error = mean_error(moved, kernels);
          if (moved_error < error - kLeastGain) {
            fitted.profile = moved;
            error = moved_error;
            is_better = true;
            break;
          }
        }
      }
    }
  }
  fitted.error_after = error;
  return fitted;
}

}  // namespace stof::tune
