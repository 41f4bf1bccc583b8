#pragma once

#include <array>
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

// The rates that the cost model reads, which are those that are fitted.
struct FittedRate {
  const char* name;
  double base::DeviceProfile::*member;
};
inline constexpr auto kFittedRates = std::to_array<FittedRate>({
    {"dram_gbps", &base::DeviceProfile::dram_gbps},
    {"l2_gbps", &base::DeviceProfile::l2_gbps},
    {"tensor_tflops", &base::DeviceProfile::tensor_tflops},
    {"mma_sync_tflops", &base::DeviceProfile::mma_sync_tflops},
    {"fma_tflops", &base::DeviceProfile::fma_tflops},
    {"kernel_step_us", &base::DeviceProfile::kernel_step_us},
    {"programmatic_step_us", &base::DeviceProfile::programmatic_step_us},
});

inline constexpr double kMostFit = 4;  // times as much, or as little, as a rate was

// kFittedRates of `start`, moved by at most kMostFit so that it comes nearest to the times, see
// fit_positive; `start` where the mean error would not be less. A rate that no kernel depends on
// stays. Deterministic. Predictions are made from several threads at once. Throws InternalError for
// a time that is not above 0.
FittedRates fit_rates(const base::DeviceProfile& start, std::span<const TimedKernel> kernels);

}  // namespace stof::tune
