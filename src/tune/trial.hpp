#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/kernel_config.hpp"

namespace stof::tune {

// One way to run a segment: the name of a template, and a value for each of its parameters.
struct Setting {
  std::string kernel;
  kernel::KernelConfig config;
  double predicted_us = 0;  // by the cost model; not a part of what the setting is

  friend bool operator==(const Setting& a, const Setting& b) {
    return a.kernel == b.kernel && a.config == b.config;
  }
  friend bool operator<(const Setting& a, const Setting& b) {
    return std::tie(a.kernel, a.config) < std::tie(b.kernel, b.config);
  }
};

// A setting of a problem: the text that is the same for all segments which take the same time.
struct Trial {
  std::string problem;
  Setting setting;

  friend bool operator<(const Trial& a, const Trial& b) {
    return std::tie(a.problem, a.setting) < std::tie(b.problem, b.setting);
  }
};

struct Outcome {
  std::optional<double> time_us;  // of one run; nothing where it cannot be used
  std::string failure;            // why not

  bool is_known() const { return time_us.has_value() || !failure.empty(); }
};

// Times trials against each other: an outcome for each, in order. Where it is stopped, those that
// it did not get to are unknown, or missing at the end.
using Measure = std::function<std::vector<Outcome>(std::span<const Trial>)>;
// What is known of a trial without timing it.
using Recall = std::function<std::optional<Outcome>(const Trial&)>;

}  // namespace stof::tune
