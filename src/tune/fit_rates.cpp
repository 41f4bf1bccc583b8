#include "tune/fit_rates.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "base/check.hpp"
#include "tune/fit_positive.hpp"

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
  // A rate that only few kernels say little of wants to stay where it was.
  constexpr FitOptions kFit = {.most = kMostFit, .prior = 1e-3};
  constexpr double kStays = 1e-6;
  const auto moved = [&](const std::vector<double>& ratios) {
    DeviceProfile profile = start;
    for (std::size_t i = 0; i < kFittedRates.size(); ++i) {
      if (std::abs(ratios[i] - 1) > kStays) {
        profile.*kFittedRates[i].member *= ratios[i];
      }
    }
    return profile;
  };
  const auto errors = [&](const std::vector<double>& ratios) {
    const DeviceProfile profile = moved(ratios);
    std::vector<double> errors_of;
    for (const TimedKernel& kernel : kernels) {
      errors_of.push_back(std::log(kernel.predicted_us(profile) / kernel.measured_us));
    }
    return errors_of;
  };
  FittedRates fitted{
      .profile = start, .error_before = mean_error(start, kernels), .error_after = 0};
  fitted.profile = moved(fit_positive(std::vector<double>(kFittedRates.size(), 1), errors, kFit));
  fitted.error_after = mean_error(fitted.profile, kernels);
  if (fitted.error_after > fitted.error_before) {  // squares and prior were better, errors are not
    fitted.profile = start;
    fitted.error_after = fitted.error_before;
  }
  return fitted;
}

}  // namespace stof::tune
