#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "tune/trial.hpp"

// Simulated costs for the search: smooth in each parameter around an optimum that the model knows
// roughly, rugged between settings, with settings that fail.
namespace stof::testing {

// A number in [0, 1) that a text decides.
inline double hash_share(const std::string& text) {
  const std::string digits = base::hash(text).hex().substr(0, 12);
  return static_cast<double>(std::stoull(digits, nullptr, 16)) / std::pow(2.0, 48);
}

// Normally distributed, decided by a text (Box and Muller, 1958).
inline double hash_normal(const std::string& text) {
  const double u = std::max(hash_share(text + "/u"), 1e-12);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * hash_share(text + "/v"));
}

struct SurfaceOptions {
  std::vector<int> values = {4, 4, 3, 3};  // of each parameter
  double model_error = 0.15;               // of predictions, log-normal
  double ruggedness = 0.04;                // of times, log-normal
  double failures = 0.05;
  double noise = 0.004;  // of a measurement, log-normal
};

// The settings of one problem with their true times.
class Surface {
 public:
  Surface(std::string name, const SurfaceOptions& options)
      : name_(std::move(name)), options_(options) {
    std::vector<int> digits(options.values.size(), 0);
    do {
      kernel::KernelConfig config;
      for (std::size_t i = 0; i < digits.size(); ++i) {
        config.emplace(fmt::format("p{}", i), std::int64_t{1} << digits[i]);
      }
      tune::Setting setting{.kernel = "kernel", .config = config};
      const double time_us = true_time(digits);
      const std::string key = name_ + text_of(digits);
      setting.predicted_us = time_us * std::exp(options.model_error * hash_normal(key + "/model"));
      times_[setting] = time_us;
      if (hash_share(key + "/fails") < options.failures) {
        failing_.insert(setting);
      }
      settings_.push_back(std::move(setting));
    } while (next(digits));
    std::ranges::stable_sort(settings_, {}, &tune::Setting::predicted_us);
    failing_.erase(settings_.front());
  }

  const std::string& name() const { return name_; }
  const std::vector<tune::Setting>& settings() const { return settings_; }
  double true_time(const tune::Setting& setting) const { return times_.at(setting); }

  double best_time() const {
    double best = -1;
    for (const auto& [setting, time_us] : times_) {
      if (!failing_.contains(setting) && (best < 0 || time_us < best)) {
        best = time_us;
      }
    }
    return best;
  }

  tune::Outcome measure(const tune::Setting& setting) const {
    const double time_us = times_.at(setting);
    if (failing_.contains(setting)) {
      return {.time_us = {}, .failure = "it does not compile"};
    }
    const std::string key = fmt::format("{}{}", name_, setting.predicted_us);
    return {.time_us = time_us * std::exp(options_.noise * hash_normal(key + "/noise")),
            .failure = {}};
  }

 private:
  bool next(std::vector<int>& digits) const {
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (++digits[i] < options_.values[i]) {
        return true;
      }
      digits[i] = 0;
    }
    return false;
  }

  static std::string text_of(const std::vector<int>& digits) {
    std::string text;
    for (const int digit : digits) {
      text += fmt::format("/{}", digit);
    }
    return text;
  }

  double true_time(const std::vector<int>& digits) const {
    double log_time = std::log(5 + 95 * hash_share(name_ + "/scale"));
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const std::string key = fmt::format("{}/{}", name_, i);
      const double best = hash_share(key + "/best") * (options_.values[i] - 1);
      const double weight = 0.02 + 0.12 * hash_share(key + "/weight");
      log_time += weight * (digits[i] - best) * (digits[i] - best);
    }
    return std::exp(log_time + options_.ruggedness * hash_normal(name_ + text_of(digits)));
  }

  std::string name_;
  SurfaceOptions options_;
  std::vector<tune::Setting> settings_;
  std::map<tune::Setting, double> times_;
  std::set<tune::Setting> failing_;
};

}  // namespace stof::testing
