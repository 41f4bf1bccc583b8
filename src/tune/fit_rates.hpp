#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/device_profile.hpp"

namespace stof::tune {

// A kernel that was timed, and what the cost model says of it on a GPU of any rates.
struct TimedKernel {
  std::string name;  // for people
  double measured_us = 0;
  std::function<double(const base::DeviceProfile&)> predicted_us;
};

struct FittedRates {
  base::DeviceProfile profile;  // rates_source stays
  // The mean of |log(predicted / measured)|, before and with the fitted rates: about the mean
  // relative error.
  double error_before = 0;
  double error_after = 0;
};

inline constexpr double kMostFit = 4;  // times as much, or as little, as a rate was

// The rates of `start` that the cost model reads, moved by at most kMostFit so that it comes
// nearest to the times: a descent along one rate after the other, on a logarithmic scale, with
// steps that halve. A rate that no kernel depends on stays. Deterministic. Throws InternalError for
// a time that is not above 0.
FittedRates fit_rates(const base::DeviceProfile& start, std::span<const TimedKernel> kernels);

}  // namespace stof::tune
