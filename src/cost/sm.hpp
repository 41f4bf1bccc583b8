#pragma once

#include <cstdint>

#include "base/device_profile.hpp"
#include "cost/coefficients.hpp"

namespace stof::cost {

// One SM of a GPU, in the units of the formulas: work in flops or bytes to microseconds.
class Sm {
 public:
  Sm(const base::DeviceProfile& profile, const Coefficients& fitted)
      : device(profile),
        coefficients(fitted),
        count(static_cast<double>(profile.sm_count)),
        clock_ratio_(fitted.clock_mhz / profile.clock_mhz) {}

  double tensor_us(double flops, double share) const {
    return flops / (device.tensor_tflops * share / count * 1e6);
  }
  double mma_us(double flops, double share) const {
    return flops / (device.mma_sync_tflops * share / count * 1e6);
  }
  double fma_us(double flops, double share) const {
    return flops / (device.fma_tflops * share / count * 1e6);
  }
  double l2_us(double bytes, double share) const {
    return bytes / (device.l2_gbps * share / count * 1e3);
  }
  // Of all SMs together.
  double dram_us(double bytes, double share) const {
    return bytes / (device.dram_gbps * share * 1e3);
  }
  // Nanoseconds of Coefficients.
  double us(double nanoseconds) const { return nanoseconds * clock_ratio_ / 1e3; }

  const base::DeviceProfile& device;
  const Coefficients& coefficients;
  double count;

 private:
  double clock_ratio_;
};

}  // namespace stof::cost
