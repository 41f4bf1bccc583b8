#include "fusion/lower.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fusion/attention.hpp"
#include "fusion/attention_use.hpp"
#include "fusion/group_planner.hpp"
#include "fusion/memory.hpp"
#include "fusion/prepare.hpp"
#include "fusion/propose.hpp"
#include "fusion/run_time_masks.hpp"
#include "fusion/scheme_groups.hpp"
#include "fusion/variables.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

using contract::ArgumentKind;
using kernel::LaunchArgument;
using kernel::Location;

class Lowerer {
 public:
  Lowerer(const graph::Ir& ir, const OperatorOrder& order, const TemplateLibrary& templates,
          const base::DeviceProfile& device, MaskArraysByMask& masks, const Decisions& decisions)
      : ir_(ir),
        order_(order),
        planner_(ir, order, templates, device, masks, decisions),
        memory_(ir, planner_.placement(), lowered_.program),
        layouts_(planner_.placement(), memory_, lowered_.program) {}

  Lowered run(Scheme scheme) {
    const std::vector<Segment> segments = scheme.segments();
    for (const Group& group : groups_of(scheme, order_, ir_, planner_)) {
      const std::size_t number = lowered_.groups.size();
      std::string misfits;
      auto launches = planner_.plan(group, misfits);
      if (!launches) {
        throw GraphError(fmt::format("lower: no template takes {}:{}",
                                     segment_text(order_, segments[number], ir_), misfits));
      }
      add(*std::move(launches), static_cast<int>(number));
      lowered_.groups.push_back(operators_of(order_, segments[number]));
    }
    for (const int output : memory_.outputs_to_copy()) {
      output_ = output;
      add(planner_.plan_output(ir_.outputs[static_cast<std::size_t>(output)]), -1);
    }
    lowered_.scheme = std::move(scheme);
    return std::move(lowered_);
  }

  // What should take the least time; where some operator fits no template, each alone, so that the
  // error tells which.
  Scheme best_scheme() {
    std::vector<Proposal> best = propose_schemes(ir_, order_, planner_, 1);
    return best.empty() ? Scheme::of_single_operators(order_.size()) : std::move(best[0].scheme);
  }

 private:
  void add(std::vector<PlannedLaunch> launches, int group) {
    for (PlannedLaunch& one : launches) {
      launch(one.use, one.chain, one.mask.get(), std::move(one.label));
      lowered_.options.push_back(std::move(one.options));
      lowered_.origins.push_back(
          {.group = group, .problem = std::move(one.problem), .refusal = std::move(one.refusal)});
    }
  }

  void launch(const Use& use, const Chain& chain, const AttentionMask* mask, std::string text) {
    const contract::TemplateContract& contract = use.kernel->contract;
    const contract::LaunchGeometry geometry = contract::evaluate_launch(contract, use.scope);
    kernel::LaunchRecord record{.kernel = kernel_of(use, chain, mask),
                                .grid = geometry.grid,
                                .block = geometry.block,
                                .cluster = geometry.cluster,
                                .shared_bytes = geometry.shared_bytes,
                                .is_programmatic = contract.launch.pdl,
                                .arguments = {},
                                .label = std::move(text)};
    add_arguments(record, use, geometry, mask);
    lowered_.program.launches.push_back(std::move(record));
  }

  int kernel_of(const Use& use, const Chain& chain, const AttentionMask* mask) {
    kernel::KernelSpec spec{.file = use.kernel->file,
                            .entry = use.kernel->contract.name,
                            .variables = variables(use, chain, ir_, mask)};
    const auto known = std::find(lowered_.specs.begin(), lowered_.specs.end(), spec);
    if (known != lowered_.specs.end()) {
      return static_cast<int>(known - lowered_.specs.begin());
    }
    lowered_.program.kernels.push_back(spec.entry);
    lowered_.specs.push_back(std::move(spec));
    lowered_.scopes.push_back(use.scope);
    return static_cast<int>(lowered_.specs.size()) - 1;
  }

  int launch_number() const { return static_cast<int>(lowered_.program.launches.size()); }

  LaunchArgument pointer(const View& view) {
    if (view.root == GroupPlanner::kOutputRoot) {
      return Location{.space = kernel::MemorySpace::Output,
                      .index = output_,
                      .offset_bytes = view.offset * size_bytes(view.dtype)};
    }
    return memory_.locate(view, launch_number());
  }

  LaunchArgument constant(const kernel::ConstantArray& array) {
    if (!array || array->empty()) {
      return nullptr;
    }
    auto& constants = lowered_.program.constants;
    const auto known = std::find_if(constants.begin(), constants.end(), [&](const auto& other) {
      return other == array || *other == *array;
    });
    const auto index = static_cast<int>(known - constants.begin());
    if (known == constants.end()) {
      constants.push_back(array);
    }
    return Location{.space = kernel::MemorySpace::Constant, .index = index};
  }

  void add_arguments(kernel::LaunchRecord& record, const Use& use,
                     const contract::LaunchGeometry& geometry, const AttentionMask* mask) {
    const std::vector<expr::Value> scalars =
        contract::scalar_arguments(use.kernel->contract, use.scope);
    const auto boxes = contract::tensor_map_boxes(use.kernel->contract, use.scope);
    std::size_t next_scalar = 0;
    std::size_t next_box = 0;
    for (const contract::Argument& argument : use.kernel->contract.launch.arguments) {
      switch (argument.kind) {
        case ArgumentKind::Port: {
          const auto view = use.ports.find(argument.name);
          record.arguments.push_back(view == use.ports.end() ? LaunchArgument(nullptr)
                                                             : pointer(view->second));
          break;
        }
        case ArgumentKind::TensorMap:
          record.arguments.emplace_back(
              tensor_map(use.ports.at(argument.name), boxes[next_box++],
                         contract::lies_transposed(*use.kernel->contract.find_port(argument.name),
                                                   use.scope)));
          break;
        case ArgumentKind::Workspace:
          record.arguments.push_back(
              geometry.workspace_bytes == 0
                  ? LaunchArgument(nullptr)
                  : memory_.workspace(geometry.workspace_bytes,
                                      use.kernel->contract.workspace.must_be_zero,
                                      launch_number()));
          break;
        case ArgumentKind::Mask:
          record.arguments.push_back(mask_argument(*mask, argument.name, use));
          break;
        case ArgumentKind::Scalar:
          record.arguments.push_back(scalar(scalars[next_scalar++], argument.is_wide));
          break;
      }
    }
    for (const HookTensor& tensor : use.hook) {
      record.arguments.push_back(pointer(tensor.view));
      record.arguments.insert(record.arguments.end(), tensor.view.strides.begin(),
                              tensor.view.strides.end() - 1);
    }
    if (mask != nullptr) {
      for (const ModifierArgument& argument : mask->modifier.arguments()) {
        record.arguments.push_back(argument.table               ? constant(argument.table)
                                   : argument.capture.root >= 0 ? pointer(argument.capture)
                                                                : argument.value);
      }
    }
  }

  kernel::TensorMap tensor_map(View view, std::vector<std::int64_t> box, bool is_transposed) {
    if (is_transposed) {
      view = swap_last_axes(std::move(view));
      std::swap(box[box.size() - 1], box[box.size() - 2]);
    }
    return {.data = std::get<Location>(pointer(view)),
            .dtype = view.dtype,
            .extents = view.extents,
            .strides = view.strides,
            .box = box};
  }

  LaunchArgument mask_argument(const AttentionMask& mask, const std::string& name, const Use& use) {
    const auto parameter = [&](const char* of, std::int64_t otherwise) {
      const auto found = use.scope.config.find(of);
      return found == use.scope.config.end() ? otherwise : found->second;
    };
    const std::int64_t tile_q = parameter("tile_q", mask::kTile);
    return mask.run_time ? layouts_.array(*mask.run_time, name, tile_q,
                                          takes_intervals(use.kernel->contract), launch_number())
                         : constant(mask.arrays->array(name, tile_q, parameter("stage_keys", 0)));
  }

  static LaunchArgument scalar(const expr::Value& value, bool is_wide) {
    if (const auto* truth = std::get_if<bool>(&value)) {
      return *truth;
    }
    if (const auto* real = std::get_if<double>(&value)) {
      return static_cast<float>(*real);
    }
    const std::int64_t integer = std::get<std::int64_t>(value);
    if (is_wide) {
      return integer;
    }
    if (integer != static_cast<std::int32_t>(integer)) {
      throw GraphError(fmt::format("lower: {} does not fit 32 bits", integer));
    }
    return static_cast<std::int32_t>(integer);
  }

  const graph::Ir& ir_;
  const OperatorOrder& order_;
  Lowered lowered_;
  MaskArraysByMask masks_;
  GroupPlanner planner_;
  Memory memory_;
  LayoutBuilds layouts_;
  int output_ = -1;  // that GroupPlanner::kOutputRoot stands for
};

}  // namespace

Lowered lower(const graph::Ir& ir, const TemplateLibrary& templates,
              const base::DeviceProfile& device, const BuildLayout& build_layout,
              const Decisions& decisions) {
  MaskArraysByMask masks(build_layout);
  const graph::Ir prepared = decisions.is_prepared ? ir : prepare(ir, templates, device, masks);
  const OperatorOrder order = operator_order(prepared);
  Lowerer lowerer(prepared, order, templates, device, masks, decisions);
  return lowerer.run(decisions.scheme ? *decisions.scheme : lowerer.best_scheme());
}

}  // namespace stof::fusion
