#include "fusion/group_planner.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fusion/attention_use.hpp"
#include "fusion/problem.hpp"
#include "fusion/scheme.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

using graph::OpKind;

namespace {

// Those for which no other one says that it takes their template's place.
std::vector<Use> without_replaced(const std::vector<Use>& uses) {
  std::vector<Use> others;
  std::ranges::copy_if(uses, std::back_inserter(others), [&](const Use& use) {
    return std::ranges::none_of(uses, [&](const Use& other) {
      return other.kernel->contract.replaces == use.kernel->contract.name;
    });
  });
  return others;
}

}  // namespace

double predicted_us(const std::vector<PlannedLaunch>& launches) {
  return std::accumulate(launches.begin(), launches.end(), 0.0,
                         [](double sum, const PlannedLaunch& launch) {
                           return sum + launch.options.front().time.total_us();
                         });
}

GroupPlanner::GroupPlanner(const graph::Ir& ir, const OperatorOrder& order,
                           const TemplateLibrary& templates, const base::DeviceProfile& device,
                           MaskArraysByMask& masks, const Decisions& decisions)
    : ir_(ir),
      device_(device),
      device_scalars_(device_scalars(device)),
      decisions_(decisions),
      finder_(ir, templates),
      copies_(copy_candidates(templates)),
      places_(places_of(order, ir)),
      chooser_(device, decisions.lists_all),
      masks_(masks),
      placement_(ir) {}

std::optional<std::vector<PlannedLaunch>> GroupPlanner::plan(const Group& group,
                                                             std::string& misfits) {
  launches_.clear();
  if (is_empty(group)) {
    return std::move(launches_);
  }
  if (anchor(group).kind == OpKind::Concat) {
    add_concat(anchor(group));
    return std::move(launches_);
  }
  const std::vector<int> read = values_read(group);
  std::for_each(read.begin(), read.end(), [&](int value) { make_viewable(value); });
  std::shared_ptr<const AttentionMask> mask;
  if (anchor(group).kind == OpKind::Attention) {
    mask = make_mask(anchor(group));
  }
  bool is_planned = add_best(group, mask, misfits);
  if (!is_planned) {
    // Packed operands are what every kernel can read.
    std::for_each(read.begin(), read.end(), [&](int value) { pack(value); });
    std::string misfits_of_packed;
    is_planned = add_best(group, mask, misfits_of_packed);
  }
  return is_planned ? std::optional(std::move(launches_)) : std::nullopt;
}

std::optional<double> GroupPlanner::predict(const Group& group) {
  const int roots = placement_.root_count();
  std::string misfits;
  is_draft_ = true;
  const auto launches = plan(group, misfits);
  is_draft_ = false;
  placement_.forget_copies(roots);
  return launches ? std::optional(predicted_us(*launches)) : std::nullopt;
}

std::optional<Group> GroupPlanner::best_group(std::span<const int> operators) {
  std::vector<Group> groups = finder_.groups_of(operators);
  if (groups.empty()) {
    return std::nullopt;
  }
  std::size_t best = 0;
  double best_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; groups.size() > 1 && i < groups.size(); ++i) {
    const double us = predict(groups[i]).value_or(best_us);
    if (us < best_us) {
      best = i;
      best_us = us;
    }
  }
  return std::move(groups[best]);
}

std::vector<PlannedLaunch> GroupPlanner::plan_output(const graph::Output& output) {
  launches_.clear();
  make_viewable(output.value);
  const View from = *placement_.view(output.value);
  View to = from;
  to.offset = 0;
  to.strides = packed_strides(from.extents);
  to.root = kOutputRoot;
  add_copy(from, to, fmt::format("output '{}'", output.name));
  return std::move(launches_);
}

bool GroupPlanner::is_empty(const Group& group) const {
  return std::all_of(group.operators.begin(), group.operators.end(), [&](int index) {
    const graph::Operator& op = ir_.operators[static_cast<std::size_t>(index)];
    return std::all_of(op.outputs.begin(), op.outputs.end(),
                       [&](int value) { return placement_.root(value).element_count() == 0; });
  });
}

std::shared_ptr<const AttentionMask> GroupPlanner::make_mask(const graph::Operator& attention) {
  AttentionMask mask = make_attention_mask(ir_, attention, placement_, masks_);
  if (mask.run_time) {
    for (const int value : mask.run_time->data) {
      pack(value);
    }
  }
  return std::make_shared<const AttentionMask>(std::move(mask));
}

// What its operators read and none of them makes.
std::vector<int> GroupPlanner::values_read(const Group& group) const {
  std::vector<int> values;
  std::vector<int> made;
  for (const int index : group.operators) {
    const graph::Operator& op = ir_.operators[static_cast<std::size_t>(index)];
    const std::vector<int> read = fusion::values_read(op);
    values.insert(values.end(), read.begin(), read.end());
    made.insert(made.end(), op.outputs.begin(), op.outputs.end());
  }
  std::erase_if(
      values, [&](int value) { return std::find(made.begin(), made.end(), value) != made.end(); });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<Use> GroupPlanner::fitting_uses(const Group& group, const AttentionMask* mask,
                                            std::string& misfits) const {
  std::vector<Use> uses;
  for (const Candidate& candidate : group.candidates) {
    Use use = make_use(group, candidate, ir_, finder_.readers(), placement_, device_scalars_);
    const contract::TemplateContract& contract = use.kernel->contract;
    if (mask != nullptr) {
      use.scope.mask_batch = mask->features().mask_batch;
      use.scope.mask_heads = mask->features().mask_heads;
      if (mask->run_time && reads_windows(contract) && use.misfit.empty()) {
        use.misfit = "lists of columns are made of masks that are known before";
      } else if (!mask->has_key_rows() && reads_key_rows(contract) && use.misfit.empty()) {
        use.misfit = mask->run_time
                         ? fmt::format("{} keys could be seen, more than lists have room for",
                                       mask->run_time->build.max_keys)
                         : "the keys of a row are known at run time only";
      }
      use.scope.mask_score_tiles = mask->modifier.tile_count();
      if (mask->modifier.has_score() && !contract.takes_scores && use.misfit.empty()) {
        use.misfit = "it takes no score modifier";
      }
      if (takes_bands(contract) && use.misfit.empty()) {
        const std::optional<mask::Band> band = mask->arrays ? mask->arrays->band() : std::nullopt;
        use.scope.mask_band_first = band ? band->first : 0;
        use.scope.mask_band_end = band ? band->end : 0;
        use.misfit = band ? "" : "the mask is no band";
      }
      if (takes_intervals(contract) && use.misfit.empty() && !mask->has_runs()) {
        use.misfit = "rows do not see a run of keys each, or it is not known before";
      }
      if (takes_all_bitmaps(contract) && use.misfit.empty()) {
        constexpr std::int64_t kMostTiles = 1 << 16;  // of 512 bytes each
        const bool is_known = mask->arrays && mask->arrays->has_key_rows();
        use.misfit = !is_known ? "bitmaps of all tiles are made of masks that are known before"
                     : mask->features().tiles > kMostTiles
                         ? fmt::format("{} tiles, of which {} may have a bitmap each",
                                       mask->features().tiles, kMostTiles)
                         : "";
      }
      if (takes_global_tokens(contract) && use.misfit.empty()) {
        const mask::GlobalLocal* const split =
            mask->arrays && mask->arrays->global_local() ? &*mask->arrays->global_local() : nullptr;
        if (split != nullptr) {
          use.scope.mask_local_first = split->first_key;
          use.scope.mask_local_keys = split->local_keys;
          use.scope.mask_global_keys = split->global_keys;
          use.scope.mask_global_tiles = split->global_tiles();
          use.scope.mask_global_keys_at = mask::packed_groups(split->key_groups);
          use.scope.mask_global_queries_at = mask::packed_groups(split->row_groups);
        } else {
          use.misfit = "the mask is no window with global tokens";
        }
      }
    }
    if (mask != nullptr && packs(use.kernel->contract) && use.misfit.empty()) {
      const bool is_known = mask->arrays != nullptr && mask->arrays->has_key_rows();
      const bool is_large = mask->features().mask_class == mask::MaskClass::InlinePredicate;
      use.misfit = !is_known  ? "packed tiles are made of masks that are known before"
                   : is_large ? "its bitmaps take too much room"
                              : "";
    }
    if (use.misfit.empty()) {
      uses.push_back(std::move(use));
    } else {
      misfits += fmt::format("\n  {}: {}", use.kernel->contract.name, use.misfit);
    }
  }
  return uses;
}

bool GroupPlanner::add_best(const Group& group, const std::shared_ptr<const AttentionMask>& mask,
                            std::string& misfits) {
  PlannedLaunch launch;
  launch.label = label(group);
  launch.chain = group.chain;
  launch.mask = mask;
  if (!is_draft_) {
    launch.problem = group_problem(in_order(group.operators), ir_, finder_.readers(), placement_,
                                   mask.get(), device_);
  }
  return add_launch(fitting_uses(group, mask.get(), misfits), std::move(launch), misfits);
}

// Adds the best of several uses, or what was decided for the problem. Where they have no setting
// that is allowed, says so in `misfits` and adds nothing.
bool GroupPlanner::add_launch(std::vector<Use> uses, PlannedLaunch launch, std::string& misfits) {
  const AttentionMask* const mask = launch.mask.get();
  const auto choose = [&](std::vector<Use>& of) {
    const Choice* choice = chooser_.choose(of, launch.chain, ir_, mask);
    while (choice != nullptr) {
      Use& use = of[choice->use];
      use.scope.config = choice->config;
      const auto fault = contract::argument_fault(use.kernel->contract, use.scope);
      use.scope.config.clear();
      if (!fault) {
        break;
      }
      misfits += fmt::format("\n  {}: {}", use.kernel->contract.name, *fault);
      of.erase(of.begin() + static_cast<std::ptrdiff_t>(choice->use));
      choice = chooser_.choose(of, launch.chain, ir_, mask);
    }
    return choice;
  };
  std::vector<Use> unreplaced = without_replaced(uses);
  const Choice* choice = choose(unreplaced);
  if (choice != nullptr) {
    uses = std::move(unreplaced);
  } else {
    choice = choose(uses);
  }
  if (choice == nullptr) {
    for (const Use& use : uses) {
      contract::ContractScope scope = use.scope;
      scope.config = contract::default_config(use.kernel->contract);
      const auto fault = contract::launch_fault(use.kernel->contract, scope);
      misfits += fmt::format("\n  {}: no setting of its parameters is allowed on this device{}",
                             use.kernel->contract.name, fault ? "; " + *fault : "");
    }
    return false;
  }
  const Setting* const setting = is_draft_ ? nullptr : decisions_.find(launch.problem);
  Choice chosen = setting == nullptr ? *choice
                                     : chooser_.forced(*setting, *choice, uses, launch.chain, ir_,
                                                       mask, launch.refusal);
  launch.use = std::move(uses[chosen.use]);
  launch.use.scope.config = std::move(chosen.config);
  launch.use.scope.mask_long_tiles = chosen.long_tiles.count;
  launch.use.scope.mask_parts = chosen.long_tiles.parts;
  launch.use.scope.mask_section = chosen.sections.each;
  launch.use.scope.mask_last_section = chosen.sections.last;
  launch.options = std::move(chosen.options);
  launches_.push_back(std::move(launch));
  return true;
}

void GroupPlanner::add_concat(const graph::Operator& op) {
  const View whole = placement_.root(op.outputs[0]);
  const auto axis = static_cast<std::size_t>(graph::attribute<std::int64_t>(op, "axis"));
  std::int64_t begin = 0;
  for (const int part : op.inputs) {
    make_viewable(part);
    const View from = *placement_.view(part);
    View to = whole;
    to.extents = from.extents;
    to.offset += begin * whole.strides[axis];
    begin += from.extents[axis];
    add_copy(from, to, graph::value_at(ir_, op.outputs[0]).name);
  }
}

void GroupPlanner::add_copy(const View& from, const View& to, const std::string& label) {
  if (from.element_count() == 0) {
    return;
  }
  if (joinable_axes(std::array{from, to}).size() > kCopyAxes) {
    add_copies(from, to, label);
    return;
  }
  std::string misfits;
  std::vector<Use> uses;
  for (const Candidate& candidate : copies_) {
    Use use = make_copy(candidate, from, to, device_scalars_);
    if (use.misfit.empty()) {
      uses.push_back(std::move(use));
    } else {
      misfits += fmt::format("\n  {}: {}", use.kernel->contract.name, use.misfit);
    }
  }
  PlannedLaunch launch;
  launch.label = label;
  if (!is_draft_) {
    launch.problem = copy_problem(from, to, device_);
  }
  if (!add_launch(std::move(uses), std::move(launch), misfits)) {
    throw GraphError(fmt::format("lower: no template takes the copy '{}':{}", label, misfits));
  }
}

// One after another along the shortest axis, since kernels copy few axes at once.
void GroupPlanner::add_copies(View from, View to, const std::string& label) {
  std::size_t shortest = from.extents.size();
  for (std::size_t axis = 0; axis < from.extents.size(); ++axis) {
    const bool is_split = shortest < axis && from.extents[shortest] <= from.extents[axis];
    shortest = from.extents[axis] == 1 || is_split ? shortest : axis;
  }
  const std::int64_t count = std::exchange(from.extents[shortest], 1);
  to.extents[shortest] = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    add_copy(from, to, label);
    from.offset += from.strides[shortest];
    to.offset += to.strides[shortest];
  }
}

// Copies what stands in the way of strides.
void GroupPlanner::make_viewable(int value) {
  while (!placement_.view(value)) {
    pack(placement_.blocking_input(value));
  }
}

// A packed copy of a value, unless it lies packed and aligned already.
void GroupPlanner::pack(int value) {
  make_viewable(value);
  const View from = *placement_.view(value);
  if (from.is_packed() && from.alignment_bytes() == kAlignmentBytes) {
    return;
  }
  const View to = placement_.root(placement_.add_copy(value));
  add_copy(from, to, fmt::format("{} packed", graph::value_at(ir_, value).name));
}

// As they stand in the order of the graph.
std::vector<int> GroupPlanner::in_order(std::vector<int> operators) const {
  std::sort(operators.begin(), operators.end(), [&](int a, int b) {
    return places_[static_cast<std::size_t>(a)] < places_[static_cast<std::size_t>(b)];
  });
  return operators;
}

// What a group computes: the names of its results.
std::string GroupPlanner::label(const Group& group) const {
  std::vector<std::string> names;
  for (const int op : group.operators) {
    const int result = ir_.operators[static_cast<std::size_t>(op)].outputs[0];
    names.push_back(graph::value_at(ir_, result).name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace stof::fusion
