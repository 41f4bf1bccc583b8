#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "cost/model.hpp"
#include "fusion/template_library.hpp"
#include "selection_record.hpp"

namespace stof::bench {

// How much longer than with the fastest of the measured candidates attentions take.
struct Regret {
  int cases = 0;
  double mean = 0;
  double percentile_95 = 0;
  double most = 0;
};

// Mean and 95th percentile of |log(predicted / measured)|.
struct PredictionError {
  int candidates = 0;
  double mean = 0;
  double percentile_95 = 0;
};

// The choice of an attention kernel on what was measured: among the measured candidates of a case.
class SelectionReplay {
 public:
  // The templates must outlive this. Candidates of templates that are no more are left out, and
  // parameters that a template has now and had not then are at their defaults.
  SelectionReplay(std::vector<SelectionMask> masks, const fusion::TemplateLibrary& templates,
                  base::DeviceProfile device);

  std::set<std::string> families() const;

  // Of all cases, or of those of one family.
  Regret model(const cost::Coefficients& coefficients, const std::string& family = "") const;
  // With the right choice between rows and blocks, and the model's setting of that kind.
  Regret model_of_best_kind(const cost::Coefficients& coefficients) const;
  // The paper's rule: by rows where the share of 16 x 16 tiles that have something to see is below
  // 1.2 / log2(length / 16)². It, and what takes always the same, with the fastest setting of the
  // kind; cases that have none of it measured do not count.
  Regret paper() const;
  Regret always_rows() const;
  Regret always_blocks() const;

  PredictionError error(const cost::Coefficients& coefficients,
                        const std::string& kernel = "") const;

  // Fits what the model knows of attention, each template to its times, to all cases but those of a
  // family. Templates without a line of their own get one.
  cost::Coefficients fitted(const cost::Coefficients& start,
                            const std::string& family_held_out = "") const;

  // The cases with the largest regrets: what was chosen, and what would have been right.
  nlohmann::json worst(const cost::Coefficients& coefficients, std::size_t count) const;

  // All that the above say, with each family held out once, and the coefficients of that.
  nlohmann::json summary(const cost::Coefficients& coefficients) const;

 private:
  struct Observed {  // a candidate that was measured
    const SelectionMask* mask = nullptr;
    const SelectionCandidate* candidate = nullptr;
    kernel::KernelConfig config;
    std::shared_ptr<const contract::ContractScope> scope;
    cost::Problem problem;
    cost::AttentionWork work;

    bool is_by_rows() const {
      return problem.contract->takes_mask_array("key_col") ||
             problem.contract->takes_mask_array("window_col");
    }
    double measured_us() const { return *candidate->measured_us; }
    double predicted_us(const cost::Model& model) const;
    double log_error(const cost::Model& model) const;
  };
  struct Case {
    const SelectionMask* mask = nullptr;
    std::vector<Observed> candidates;
  };
  using Choose = std::function<const Observed*(const Case&)>;

  Regret regret(const Choose& choose, const std::string& family = "") const;
  static const Observed* fastest(const Case& one, const std::function<bool(const Observed&)>& is);
  static const Observed* predicted_fastest(const cost::Model& model, const Case& one,
                                           const std::function<bool(const Observed&)>& is);
  std::vector<const Observed*> of_kernel(const std::string& kernel,
                                         const std::string& family_held_out) const;
  template <typename Coefficients>
  void fit(cost::Coefficients& all, const std::string& kernel,
           const std::string& family_held_out) const;

  base::DeviceProfile device_;
  std::vector<SelectionMask> masks_;
  std::vector<Case> cases_;
};

// The coefficients of attention by name, to be printed or kept.
nlohmann::json attention_coefficients(const cost::Coefficients& coefficients);
// Those, and else what Coefficients has. Throws nlohmann::json::exception.
cost::Coefficients with_attention_coefficients(const nlohmann::json& written);

}  // namespace stof::bench
