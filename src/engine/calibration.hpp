#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "cache/tuning_store.hpp"
#include "engine/trial_runner.hpp"
#include "fusion/template_library.hpp"

namespace stof::engine {

struct CalibratedKernel {
  std::string name;  // "matmul 4096 x 4096 x 4096 by gemm_sm90"
  double measured_us = 0;
  double before_us = 0;  // as predicted with the rates that there were
  double after_us = 0;   // and with those that fit
};

struct Calibration {
  base::DeviceProfile before;
  base::DeviceProfile after;
  double error_before = 0;  // see tune::FittedRates
  double error_after = 0;
  std::vector<CalibratedKernel> kernels;
  double seconds = 0;
};

// Times products, norms, copies and attention of typical sizes, each by several templates, fits the
// rates of the profile to them, and keeps these in the store. Throws what TrialRunner::measure
// does, and CudaError where next to nothing could be timed.
Calibration calibrate(const TrialTools& tools, const fusion::TemplateLibrary& templates,
                      const fusion::BuildLayout& build_layout, cache::TuningStore& store);

// The profile of a GPU with the rates that calibrate() kept for it, where it did.
std::optional<base::DeviceProfile> find_calibration(cache::TuningStore& store,
                                                    const base::DeviceProfile& device);

}  // namespace stof::engine
