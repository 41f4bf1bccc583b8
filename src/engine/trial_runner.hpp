#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/device_profile.hpp"
#include "engine/segment_check.hpp"
#include "engine/tuning_space.hpp"
#include "execute/replay.hpp"
#include "jit/template_jit.hpp"
#include "tune/race.hpp"
#include "tune/records.hpp"

namespace stof::engine {

// What trials run on and with; all is used for as long as a runner lives.
struct TrialTools {
  int device = 0;
  const base::DeviceProfile* profile = nullptr;
  const jit::TemplateJit* jit = nullptr;
  std::string compiler;  // its build
  std::stop_token stop;
  // A sentence for people: "kernels: 12 of 32".
  std::function<void(const std::string& name, const std::string& detail)> tell;
  bool has_checks = true;  // whether results are looked at before a kernel is timed
};

// Times trials on a GPU (tune::Measure) and keeps what it finds. Kernels of a batch are compiled in
// parallel; those of one problem race, on random data that no cache holds, after their results were
// checked. From one thread.
class TrialRunner {
 public:
  TrialRunner(TrialTools tools, const TuningSpace& space, tune::Records& records)
      : tools_(std::move(tools)), space_(space), records_(records) {}

  // An outcome is a failure where a kernel does not take the trial, compile, load, or give right
  // results. Throws CudaError, which names it, where a kernel brings the GPU down, CacheError where
  // kernels may not be compiled.
  std::vector<tune::Outcome> measure(std::span<const tune::Trial> trials);

  // Times whole plans of one graph against each other, as they run: tensors are bound once. In
  // microseconds, in order; nothing where their tensors pass kMostPlanBytes, or it is not known
  // what inputs may hold. When it is `until` by steady_seconds(), those after the second that did
  // not begin are left out, and the others end with what they have. Throws as measure().
  std::vector<double> time_plans(const graph::Ir& ir, std::span<const fusion::Lowered> plans,
                                 double until = std::numeric_limits<double>::infinity()) const;

  static constexpr std::size_t kMostPlanBytes = std::size_t{4} << 30;

  // From the records, where they are of the kernels that would run now.
  std::optional<tune::Outcome> recall(const tune::Trial& trial);

 private:
  struct Candidate;  // a trial on its way
  struct Segment {   // the data of a problem
    HostTensors tensors;
    execute::TensorContents contents;
    Expectation expectation;
  };

  void compile(std::vector<Candidate>& candidates);
  void race(const std::string& problem, std::vector<Candidate*>& candidates);
  const Segment& segment(const std::string& problem);
  void prepare(Candidate& candidate, const Segment& segment, const execute::TensorCopies& copies,
               int runs) const;
  void keep(const Candidate& candidate);

  TrialTools tools_;
  const TuningSpace& space_;
  tune::Records& records_;
  std::map<std::string, Segment> segments_;
};

}  // namespace stof::engine
