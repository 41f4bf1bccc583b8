#include "fusion/lower.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fusion/attention.hpp"
#include "fusion/choose.hpp"
#include "fusion/group.hpp"
#include "fusion/memory.hpp"
#include "fusion/placement.hpp"
#include "fusion/residue_classes.hpp"
#include "fusion/run_time_masks.hpp"
#include "fusion/use.hpp"
#include "fusion/variables.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

using contract::ArgumentKind;
using graph::OpKind;
using kernel::LaunchArgument;
using kernel::Location;

class Lowerer {
 public:
  Lowerer(const graph::Ir& ir, const TemplateLibrary& templates, const base::DeviceProfile& device,
          MaskArraysByMask& masks)
      : ir_(ir),
        device_(device),
        readers_(ir),
        groups_(make_groups(ir, templates)),
        copies_(copy_candidates(templates)),
        chooser_(device),
        masks_(masks),
        placement_(ir),
        memory_(ir, placement_, lowered_.program),
        layouts_(placement_, memory_, lowered_.program) {}

  Lowered run() {
    lowered_.scheme = scheme_of(operator_order(ir_), groups_);
    for (const Group& group : groups_) {
      if (op_of(group).kind == OpKind::Concat) {
        lower_concat(op_of(group));
      } else {
        lower_group(group);
      }
    }
    for (const int output : memory_.outputs_to_copy()) {
      copy_output(output);
    }
    return std::move(lowered_);
  }

 private:
  const graph::Operator& op_of(const Group& group) const {
    return ir_.operators[static_cast<std::size_t>(group.operators.front())];
  }

  const std::string& name_of(int value) const {
    return ir_.values[static_cast<std::size_t>(value)]->name;
  }

  void lower_group(const Group& group) {
    for (const int value : values_read(group)) {
      make_viewable(value);
    }
    std::optional<AttentionMask> mask;
    if (op_of(group).kind == OpKind::Attention) {
      mask.emplace(make_attention_mask(ir_, op_of(group), placement_, masks_));
      if (mask->run_time) {
        for (const int value : mask->run_time->data) {
          pack(value);
        }
      }
    }
    const AttentionMask* const mask_or_null = mask ? &*mask : nullptr;
    std::string misfits;
    if (launch_best(fitting_uses(group, mask_or_null, misfits), group.chain, mask_or_null,
                    label(group), misfits)) {
      return;
    }
    // Packed operands are what every kernel can read.
    for (const int value : values_read(group)) {
      pack(value);
    }
    std::string misfits_of_packed;
    if (!launch_best(fitting_uses(group, mask_or_null, misfits_of_packed), group.chain,
                     mask_or_null, label(group), misfits_of_packed)) {
      throw GraphError(fmt::format("lower: no template takes {} ('{}'):{}",
                                   graph::name(op_of(group).kind), name_of(op_of(group).outputs[0]),
                                   misfits));
    }
  }

  // Launches the best of several uses. Where they have no setting that is allowed, says so in
  // `misfits` and launches nothing.
  bool launch_best(std::vector<Use> uses, const Chain& chain, const AttentionMask* mask,
                   std::string text, std::string& misfits) {
    const Choice* choice = chooser_.choose(uses, chain, ir_, mask);
    if (choice == nullptr) {
      for (const Use& use : uses) {
        misfits += fmt::format("\n  {}: no setting of its parameters is allowed on this device",
                               use.kernel->contract.name);
      }
      return false;
    }
    Use& use = uses[choice->use];
    use.scope.config = choice->config;
    use.scope.mask_long_tiles = choice->long_tiles.count;
    use.scope.mask_parts = choice->long_tiles.parts;
    launch(use, chain, mask, std::move(text));
    lowered_.options.push_back(choice->options);
    return true;
  }

  // Operators and what the pattern reads, without what the group makes itself.
  std::vector<int> values_read(const Group& group) const {
    std::vector<int> values;
    std::vector<int> made;
    for (const int index : group.operators) {
      const graph::Operator& op = ir_.operators[static_cast<std::size_t>(index)];
      const std::vector<int> read = fusion::values_read(op);
      values.insert(values.end(), read.begin(), read.end());
      made.insert(made.end(), op.outputs.begin(), op.outputs.end());
    }
    std::erase_if(values, [&](int value) {
      return std::find(made.begin(), made.end(), value) != made.end();
    });
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  std::vector<Use> fitting_uses(const Group& group, const AttentionMask* mask,
                                std::string& misfits) const {
    std::vector<Use> uses;
    for (const Candidate& candidate : group.candidates) {
      Use use = make_use(group, candidate, ir_, readers_, placement_, device_);
      if (mask != nullptr) {
        use.scope.mask_batch = mask->features().mask_batch;
        use.scope.mask_heads = mask->features().mask_heads;
        if (!mask->has_key_rows() && reads_key_rows(use) && use.misfit.empty()) {
          use.misfit = mask->run_time
                           ? fmt::format("{} keys could be seen, more than lists have room for",
                                         mask->run_time->build.max_keys)
                           : "the keys of a row are known at run time only";
        }
      }
      if (use.misfit.empty()) {
        uses.push_back(std::move(use));
      } else {
        misfits += fmt::format("\n  {}: {}", use.kernel->contract.name, use.misfit);
      }
    }
    return uses;
  }

  // Copies what stands in the way of strides.
  void make_viewable(int value) {
    while (!placement_.view(value)) {
      pack(placement_.blocking_input(value));
    }
  }

  // A packed copy of a value, unless it lies packed and aligned already.
  void pack(int value) {
    make_viewable(value);
    const View from = *placement_.view(value);
    if (from.is_packed() && from.alignment_bytes() == kAlignmentBytes) {
      return;
    }
    const View to = placement_.root(placement_.add_copy(value));
    copy(from, to, fmt::format("{} packed", name_of(value)));
  }

  void copy(const View& from, const View& to, const std::string& text) {
    std::string misfits;
    std::vector<Use> uses;
    for (const Candidate& candidate : copies_) {
      Use use = make_copy(candidate, from, to, device_);
      if (use.misfit.empty()) {
        uses.push_back(std::move(use));
      } else {
        misfits += fmt::format("\n  {}: {}", use.kernel->contract.name, use.misfit);
      }
    }
    if (launch_best(std::move(uses), {}, nullptr, text, misfits)) {
      return;
    }
    throw GraphError(fmt::format("lower: no template takes the copy '{}':{}", text, misfits));
  }

  void lower_concat(const graph::Operator& op) {
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
      if (from.element_count() > 0) {
        copy(from, to, name_of(op.outputs[0]));
      }
    }
  }

  void copy_output(int output) {
    const graph::Output& shown = ir_.outputs[static_cast<std::size_t>(output)];
    make_viewable(shown.value);
    const View from = *placement_.view(shown.value);
    View to = from;
    to.offset = 0;
    to.strides = packed_strides(from.extents);
    to.root = kOutputRoot;
    output_ = output;
    copy(from, to, fmt::format("output '{}'", shown.name));
  }

  // What a group computes: the names of its results.
  std::string label(const Group& group) const {
    std::vector<std::string> names;
    for (const int op : group.operators) {
      names.push_back(name_of(ir_.operators[static_cast<std::size_t>(op)].outputs[0]));
    }
    return fmt::format("{}", fmt::join(names, ", "));
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
    if (view.root == kOutputRoot) {
      return Location{.space = kernel::MemorySpace::Output, .index = output_};
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
          record.arguments.emplace_back(tensor_map(use.ports.at(argument.name), boxes[next_box++]));
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

  kernel::TensorMap tensor_map(const View& view, const std::vector<std::int64_t>& box) {
    return {.data = std::get<Location>(pointer(view)),
            .dtype = view.dtype,
            .extents = view.extents,
            .strides = view.strides,
            .box = box};
  }

  LaunchArgument mask_argument(const AttentionMask& mask, const std::string& name, const Use& use) {
    const auto tile_q = use.scope.config.find("tile_q");
    const std::int64_t queries = tile_q == use.scope.config.end() ? mask::kTile : tile_q->second;
    return mask.run_time ? layouts_.array(*mask.run_time, name, queries, launch_number())
                         : constant(mask.arrays->array(name, queries));
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

  static constexpr int kOutputRoot = -2;  // of a view that is an output itself

  const graph::Ir& ir_;
  const base::DeviceProfile& device_;
  Lowered lowered_;
  Readers readers_;
  std::vector<Group> groups_;
  std::vector<Candidate> copies_;
  Chooser chooser_;
  MaskArraysByMask& masks_;
  Placement placement_;
  Memory memory_;
  LayoutBuilds layouts_;
  int output_ = -1;  // that kOutputRoot stands for
};

}  // namespace

Lowered lower(const graph::Ir& ir, const TemplateLibrary& templates,
              const base::DeviceProfile& device, const BuildLayout& build_layout) {
  const auto build_on_host = [](const Mask& mask, const mask::Extent& extent) {
    return mask::build_layout(mask, extent);
  };
  MaskArraysByMask masks(build_layout ? build_layout : build_on_host);
  const graph::Ir prepared = with_residue_classes(with_kv_lengths(ir), masks);
  return Lowerer(prepared, templates, device, masks).run();
}

}  // namespace stof::fusion
