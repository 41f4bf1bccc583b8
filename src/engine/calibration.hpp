#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "cache/tuning_store.hpp"
#include "engine/trial_runner.hpp"
#include "fusion/template_library.hpp"
#include "stof/graph.hpp"

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

// A kernel that calibrate() times.
struct Probe {
  std::string name;
  Graph graph;
  tune::Trial trial;
  // What it should take on a GPU of any rates, as lowering says; from any thread.
  std::function<double(const base::DeviceProfile&)> predicted_us;
};

// Of typical sizes, each bounded by something else: of each operator the best setting of those
// templates that come near to the fastest. The templates must outlive the probes.
std::vector<Probe> calibration_probes(const base::DeviceProfile& device,
                                      const fusion::TemplateLibrary& templates,
                                      const fusion::BuildLayout& build_layout);

// Times products, norms, copies and attention of typical sizes, each by several templates, fits the
// rates of the profile to them, and keeps these in the store. Throws what TrialRunner::measure
// does, and CudaError where next to nothing could be timed.
Calibration calibrate(const TrialTools& tools, const fusion::TemplateLibrary& templates,
                      const fusion::BuildLayout& build_layout, cache::TuningStore& store);

// The profile of a GPU with the rates that calibrate() kept for it, where it did.
std::optional<base::DeviceProfile> find_calibration(cache::TuningStore& store,
                                                    const base::DeviceProfile& device);

}  // namespace stof::engine
