#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/device_profile.hpp"
#include "fusion/attention.hpp"
#include "fusion/choose.hpp"
#include "fusion/decisions.hpp"
#include "fusion/group.hpp"
#include "fusion/mask_arrays.hpp"
#include "fusion/match.hpp"
#include "fusion/placement.hpp"
#include "fusion/scheme.hpp"
#include "fusion/use.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// A launch, but for where in memory its tensors are.
struct PlannedLaunch {  // NOLINT(bugprone-exception-escape): JSON moves without throwing
  std::string label;    // what it computes, for people
  Use use;              // with its setting
  Chain chain;
  std::shared_ptr<const AttentionMask> mask;  // of an attention
  std::vector<Option> options;                // what runs, then what was not chosen
  nlohmann::json problem;                     // see problem.hpp
  std::string refusal;                        // why what was decided does not run
};

double predicted_us(const std::vector<PlannedLaunch>& launches);

// Decides how groups of one graph run, each with the copies that it needs of what lies so that no
// kernel can read it. A copy serves all groups that are planned after it.
class GroupPlanner {
 public:
  // All are kept by reference; the graph is prepared (see prepare.hpp).
  GroupPlanner(const graph::Ir& ir, const OperatorOrder& order, const TemplateLibrary& templates,
               const base::DeviceProfile& device, MaskArraysByMask& masks,
               const Decisions& decisions);

  // The launches of a group, copies first; none for results without elements. Nothing where no
  // template takes it: `misfits` then says why, a line for each template. Throws GraphError where a
  // mask does not fit its attention.
  std::optional<std::vector<PlannedLaunch>> plan(const Group& group, std::string& misfits);

  // As plan(), but with nothing decided, and the copies are forgotten again: what the launches
  // should take, in microseconds.
  std::optional<double> predict(const Group& group);

  // Of the groups of just these operators the fastest, by predict(); the first where no template
  // takes any of them; nothing where there is none. A pattern that does not fit, by its dtypes say,
  // leaves its operators to others.
  std::optional<Group> best_group(std::span<const int> operators);

  // What makes an output of a value that no kernel writes there: the copies on the way and the last
  // one, whose y is of the root kOutputRoot.
  std::vector<PlannedLaunch> plan_output(const graph::Output& output);
  static constexpr int kOutputRoot = -2;

  const Placement& placement() const { return placement_; }
  const GroupFinder& finder() const { return finder_; }

 private:
  const graph::Operator& anchor(const Group& group) const {
    return ir_.operators[static_cast<std::size_t>(group.operators.front())];
  }

  bool is_empty(const Group& group) const;
  std::shared_ptr<const AttentionMask> make_mask(const graph::Operator& attention);
  std::vector<int> values_read(const Group& group) const;
  std::vector<Use> fitting_uses(const Group& group, const AttentionMask* mask,
                                std::string& misfits) const;
  bool add_best(const Group& group, const std::shared_ptr<const AttentionMask>& mask,
                std::string& misfits);
  bool add_launch(std::vector<Use> uses, PlannedLaunch launch, std::string& misfits);
  void add_concat(const graph::Operator& op);
  void add_copy(const View& from, const View& to, const std::string& label);
  void add_copies(View from, View to, const std::string& label);
  void make_viewable(int value);
  void pack(int value);
  std::vector<int> in_order(std::vector<int> operators) const;
  std::string label(const Group& group) const;

  const graph::Ir& ir_;
  const base::DeviceProfile& device_;
  DeviceScalars device_scalars_;
  const Decisions& decisions_;
  GroupFinder finder_;
  std::vector<Candidate> copies_;
  std::vector<int> places_;  // of operators in the order; -1
  Chooser chooser_;
  MaskArraysByMask& masks_;
  Placement placement_;
  std::vector<PlannedLaunch> launches_;  // of the group that is being planned
  bool is_draft_ = false;                // only their time is asked for
};

}  // namespace stof::fusion
