#include "fusion/use.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "expr/evaluate.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using contract::Port;
using graph::OpKind;

// Why something cannot be, found deep inside.
struct Misfit {
  std::string reason;
};

View joined(const std::string& name, const View& view, std::span<const int> sizes) {
  auto result = join_axes(view, sizes);
  if (!result) {
    throw Misfit{fmt::format("the axes of {} do not lie together", name)};
  }
  return *std::move(result);
}

// A constraint, and what the dims are that it reads: "dim.head_dim % 8 == 0, where dim.head_dim is
// 60".
std::string with_dims(const contract::Constraint& constraint,
                      const contract::ContractScope& scope) {
  constexpr std::string_view kDim = "dim.";
  std::string text = constraint.text;
  std::string_view before = ", where ";
  for (const auto& [name, type] : expr::names_used(constraint.condition.expr()).scalars) {
    if (name.starts_with(kDim)) {
      text += fmt::format("{}{} is {}", before, name, scope.dims.at(name.substr(kDim.size())));
      before = " and ";
    }
  }
  return text;
}

class UseMaker {
 public:
  UseMaker(const Candidate& candidate, const DeviceScalars& device)
      : contract_(candidate.kernel->contract), match_(candidate.match) {
    use_.kernel = candidate.kernel;
    use_.scope.device = device;
    use_.scope.attributes = match_.attributes;
    use_.scope.operators = match_.alternatives;
  }

  template <typename Fill>
  Use make(Fill fill) {
    try {
      fill(*this);
      check_ports();
      if (const auto* violated = contract::violated_constraint(contract_, use_.scope)) {
        throw Misfit{with_dims(*violated, use_.scope)};
      }
    } catch (Misfit& misfit) {
      use_.misfit = std::move(misfit.reason);
    }
    return std::move(use_);
  }

  void fill_group(const Group& group, const graph::Ir& ir, const Readers& readers,
                  const Placement& placement) {
    const graph::Operator& anchor = ir.operators[static_cast<std::size_t>(group.operators.front())];
    const std::vector<int> others = other_operands(group.chain);
    std::map<std::string, View> views = port_views(group, ir, readers, placement);
    std::vector<View> hooked;
    hooked.reserve(others.size());
    for (const int value : others) {
      hooked.push_back(
          broadcast(viewed(value, ir, placement), placement.extents(group.chain.result())));
    }
    const bool is_single = contract_.pattern.size() == 1;
    if (match_.operators.empty()) {
      View& from = views.at(input(0));
      from = broadcast(from, views.at(output()).extents);
      copy_views(views, hooked);
    } else if (anchor.kind == OpKind::MatMul && is_single) {
      matmul_views(anchor, views, hooked);
    } else if (anchor.kind >= OpKind::ReduceSum && anchor.kind <= OpKind::ReduceMax && is_single) {
      reduce_views(anchor, views, hooked);
    } else {
      for (auto& [name, view] : views) {
        view = is_turned(contract_, match_, name) ? swap_last_axes(view) : view;
      }
      joined_views(views, hooked, group.chain.value);
    }
    for (std::size_t i = 0; i < others.size(); ++i) {
      const View& view = hooked[i];
      if (view.extents.back() != 1 && view.strides.back() > 1) {
        throw Misfit{"a tensor that the epilogue reads is strided along its innermost axis"};
      }
      use_.hook.push_back({.value = others[i], .view = view});
    }
    use_.ports = std::move(views);
  }

  void fill_copy(const View& from, const View& to) {
    std::map<std::string, View> views = {{input(0), from}, {output(), to}};
    std::vector<View> hooked;
    copy_views(views, hooked);
    use_.ports = std::move(views);
  }

 private:
  // Ports of the pattern's first step.
  const std::string& input(std::size_t i) const { return contract_.pattern.front().inputs.at(i); }
  const std::string& output() const { return contract_.pattern.front().outputs.front(); }

  static View viewed(int value, const graph::Ir& ir, const Placement& placement) {
    auto view = placement.view(value);
    if (!view) {
      throw Misfit{
          fmt::format("'{}' has no strides", ir.values[static_cast<std::size_t>(value)]->name)};
    }
    return *std::move(view);
  }

  // The tensors of the pattern's ports, as the graph has them; the hooked one is the chain's
  // result.
  std::map<std::string, View> port_views(const Group& group, const graph::Ir& ir,
                                         const Readers& readers, const Placement& placement) const {
    std::map<std::string, View> views;
    if (match_.operators.empty()) {  // a copy
      views.emplace(input(0), viewed(group.chain.value, ir, placement));
      views.emplace(output(), placement.root(group.chain.result()));
      return views;
    }
    const auto hook = contract_.hooks.find("epilogue");
    for (const Port& port : contract_.ports) {
      const auto value = match_.values.find(port.name);
      if (value == match_.values.end() || is_left_out(port, value->second, group, readers)) {
        continue;
      }
      // With templates that have no hook, or another one, beside it no chain follows.
      const bool is_hooked = hook != contract_.hooks.end() && hook->second == port.name &&
                             group.chain.value == value->second;
      views.emplace(port.name, port.is_output ? placement.root(is_hooked ? group.chain.result()
                                                                         : value->second)
                                              : viewed(value->second, ir, placement));
    }
    return views;
  }

  // An optional output that nobody outside wants, and the name of an absent operator's result.
  bool is_left_out(const Port& port, int value, const Group& group, const Readers& readers) const {
    if (!port.is_output || !port.is_optional) {
      return false;
    }
    const bool is_alias =
        std::any_of(contract_.ports.begin(), contract_.ports.end(), [&](const Port& other) {
          const auto bound = match_.values.find(other.name);
          return !other.is_output && bound != match_.values.end() && bound->second == value;
        });
    const std::vector<int>& readers_of = readers.of(value);
    return is_alias || std::all_of(readers_of.begin(), readers_of.end(), [&](int reader) {
             return std::find(group.operators.begin(), group.operators.end(), reader) !=
                    group.operators.end();
           });
  }

  void copy_views(std::map<std::string, View>& views, std::vector<View>& hooked) const {
    std::vector<View> all = {views.at(input(0)), views.at(output())};
    all.insert(all.end(), hooked.begin(), hooked.end());
    std::vector<int> sizes = all.front().rank() == 0 ? std::vector<int>() : joinable_axes(all);
    if (sizes.size() > kCopyAxes) {
      throw Misfit{fmt::format("{} axes do not join to {}", sizes.size(), kCopyAxes)};
    }
    sizes.insert(sizes.begin(), kCopyAxes - sizes.size(), 0);
    for (auto& [name, view] : views) {
      view = joined(name, view, sizes);
    }
    join_hooked(hooked, sizes);
  }

  void matmul_views(const graph::Operator& op, std::map<std::string, View>& views,
                    std::vector<View>& hooked) const {
    View& x = views.at(input(0));
    View& w = views.at(input(1));
    View& y = views.at(output());
    x = graph::attribute<bool>(op, "transpose_a") ? swap_last_axes(x) : x;
    w = graph::attribute<bool>(op, "transpose_b") ? swap_last_axes(w) : w;
    const auto spread = [&](View view) {
      std::vector<std::int64_t> extents = y.extents;
      std::copy(view.extents.end() - 2, view.extents.end(), extents.end() - 2);
      return broadcast(std::move(view), extents);
    };
    x = spread(x);
    w = spread(w);
    const bool is_shared = std::all_of(w.strides.begin(), w.strides.end() - 2,
                                       [](std::int64_t stride) { return stride == 0; });
    const int rank = y.rank();
    const auto join = [&](const std::vector<int>& sizes, const std::vector<int>& w_sizes) {
      std::vector<View> joined_hooked;
      const auto joined_x = join_axes(x, sizes);
      const auto joined_w = join_axes(w, w_sizes);
      const auto joined_y = join_axes(y, sizes);
      for (const View& view : hooked) {
        if (auto one = join_axes(view, sizes)) {
          joined_hooked.push_back(*std::move(one));
        }
      }
      if (!joined_x || !joined_w || !joined_y || joined_hooked.size() != hooked.size()) {
        return false;
      }
      x = *joined_x;
      w = *joined_w;
      y = *joined_y;
      hooked = std::move(joined_hooked);
      return true;
    };
    if (is_shared) {
      View flat = w;
      flat.extents.assign(w.extents.end() - 2, w.extents.end());
      flat.strides.assign(w.strides.end() - 2, w.strides.end());
      const View spread_w = std::exchange(w, flat);
      if (join({0, rank - 1, 1}, {0, 1, 1})) {
        return;
      }
      w = spread_w;
    }
    if (!join({rank - 2, 1, 1}, {rank - 2, 1, 1})) {
      throw Misfit{"the leading axes do not join to one batch axis"};
    }
  }

  void reduce_views(const graph::Operator& op, std::map<std::string, View>& views,
                    std::vector<View>& hooked) const {
    View& x = views.at(input(0));
    View& y = views.at(output());
    const auto axis = static_cast<int>(graph::attribute<std::int64_t>(op, "axis"));
    const int inner = x.rank() - axis - 1;
    x = joined(input(0), x, std::array{axis, 1, inner});
    const std::array sizes = {y.rank() - inner, inner};
    y = joined(output(), y, sizes);
    join_hooked(hooked, sizes);
  }

  static void join_hooked(std::vector<View>& hooked, std::span<const int> sizes) {
    for (View& view : hooked) {
      view = joined("an operand of the epilogue", view, sizes);
    }
  }

  void joined_views(std::map<std::string, View>& views, std::vector<View>& hooked,
                    int hooked_value) {
    for (auto& [name, view] : views) {
      const Port& port = *contract_.find_port(name);
      const auto rank = static_cast<int>(port.shape.size());
      const std::vector<int> sizes = leading_joined(view.rank(), rank);
      if (port.is_output && hooked_value == match_.values.at(name)) {
        join_hooked(hooked, sizes);
      }
      if (view.rank() < rank) {
        spread_.emplace(name, static_cast<std::size_t>(rank - view.rank()));
      }
      view = joined(name, view, sizes);
    }
  }

  void check_ports() {
    for (const bool is_spread : {false, true}) {
      for (const Port& port : contract_.ports) {
        const auto view = use_.ports.find(port.name);
        if (view != use_.ports.end() && spread_.contains(port.name) == is_spread) {
          bind_dtype(port, view->second.dtype);
          bind_shape(port, view->second);
        } else if (view == use_.ports.end() && !port.is_optional) {
          throw Misfit{fmt::format("the port {} has no tensor", port.name)};
        }
      }
    }
    for (const Port& port : contract_.ports) {
      if (!use_.ports.contains(port.name)) {
        stand_in(port);
      } else {
        check_expressions(port);
        check_layout(port, use_.ports.at(port.name));
      }
    }
  }

  bool is_spread_along(const std::string& port, std::size_t axis) const {
    const auto axes = spread_.find(port);
    return axes != spread_.end() && axis < axes->second;
  }

  void bind_dtype(const Port& port, DType dtype) {
    const auto symbol = contract_.dtypes.find(port.dtype);
    const bool fits = symbol == contract_.dtypes.end()
                          ? dtype_from_name(port.dtype) == dtype
                          : std::find(symbol->second.begin(), symbol->second.end(), dtype) !=
                                    symbol->second.end() &&
                                use_.scope.dtypes.emplace(port.dtype, dtype).first->second == dtype;
    if (!fits) {
      throw Misfit{fmt::format("{} is {}", port.name, name(dtype))};
    }
  }

  void bind_shape(const Port& port, View& view) {
    if (view.extents.size() != port.shape.size()) {
      throw Misfit{fmt::format("{} has {} axes", port.name, view.rank())};
    }
    for (std::size_t axis = 0; axis < port.shape.size(); ++axis) {
      const std::string& dim = port.shape[axis].dim;
      if (dim.empty()) {
        continue;
      }
      if (const auto known = use_.scope.dims.find(dim);
          known != use_.scope.dims.end() && is_spread_along(port.name, axis)) {
        view.extents[axis] = known->second;
      }
      const std::int64_t extent = view.extents[axis];
      if (use_.scope.dims.emplace(dim, extent).first->second != extent) {
        throw Misfit{fmt::format("{} is {} in {}", dim, extent, port.name)};
      }
      use_.scope.strides.emplace(port.name + "." + dim, view.strides[axis]);
    }
  }

  // Expressions may speak of absent ports too.
  void stand_in(const Port& port) {
    use_.scope.alignments.emplace(port.name, kAlignmentBytes);
    for (const contract::Extent& extent : port.shape) {
      if (!extent.dim.empty()) {
        use_.scope.dims.emplace(extent.dim, 1);
        use_.scope.strides.emplace(port.name + "." + extent.dim, 0);
      }
    }
    if (const auto symbol = contract_.dtypes.find(port.dtype); symbol != contract_.dtypes.end()) {
      use_.scope.dtypes.emplace(port.dtype, symbol->second.front());
    }
  }

  void check_expressions(const Port& port) const {
    const View& view = use_.ports.at(port.name);
    for (std::size_t axis = 0; axis < port.shape.size(); ++axis) {
      if (!port.shape[axis].dim.empty()) {
        continue;
      }
      expr::Bindings dims;
      for (const auto& [dim, value] : use_.scope.dims) {
        dims.emplace("dim." + dim, value);
      }
      if (expr::evaluate_integer(port.shape[axis].value, dims) != view.extents[axis]) {
        throw Misfit{fmt::format("extent {} of {} is not {}", view.extents[axis], port.name,
                                 port.shape[axis].value.text())};
      }
    }
  }

  // Where nothing in the header speaks of them, bases are aligned and axes packed.
  void check_layout(const Port& port, const View& view) {
    const std::int64_t alignment = view.alignment_bytes();
    use_.scope.alignments.emplace(port.name, alignment);
    if (alignment < kAlignmentBytes && !contract_.reads("alignment." + port.name)) {
      throw Misfit{
          fmt::format("{} does not start at a multiple of {} bytes", port.name, kAlignmentBytes)};
    }
    std::int64_t packed = 1;
    for (std::size_t axis = port.shape.size(); axis-- > 0;) {
      if (view.extents[axis] == 1) {
        continue;
      }
      if (view.strides[axis] != packed &&
          !contract_.reads(fmt::format("stride.{}.{}", port.name, port.shape[axis].dim))) {
        throw Misfit{fmt::format("{} is not packed", port.name)};
      }
      packed = view.strides[axis] * view.extents[axis];
    }
  }

  const contract::TemplateContract& contract_;
  const Match& match_;
  Use use_;
  // Leading axes that a port has and its tensor lacks: it is the same all along them.
  std::map<std::string, std::size_t> spread_;
};

}  // namespace

DeviceScalars device_scalars(const base::DeviceProfile& device) {
  DeviceScalars scalars;
  for (const auto& [name, value] : device.scalars()) {
    scalars.emplace("device." + name, value);
  }
  return scalars;
}

Use make_use(const Group& group, const Candidate& candidate, const graph::Ir& ir,
             const Readers& readers, const Placement& placement, const DeviceScalars& device) {
  return UseMaker(candidate, device).make([&](UseMaker& maker) {
    maker.fill_group(group, ir, readers, placement);
  });
}

Use make_copy(const Candidate& candidate, const View& from, const View& to,
              const DeviceScalars& device) {
  return UseMaker(candidate, device).make([&](UseMaker& maker) { maker.fill_copy(from, to); });
}

}  // namespace stof::fusion
