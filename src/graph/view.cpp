#include "graph/view.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "graph/op_info.hpp"

namespace stof::graph {

namespace {

const Operator* view_that_makes(const Ir& ir, int id) {
  const int producer = value_at(ir, id).producer;
  if (producer < 0) {
    return nullptr;
  }
  const Operator& op = ir.operators[static_cast<std::size_t>(producer)];
  return op_info(op.kind).op_class == OpClass::View ? &op : nullptr;
}

// The views from the root to the value, the one nearest to the value first.
std::vector<const Operator*> chain_of(const Ir& ir, int id) {
  std::vector<const Operator*> chain;
  while (const Operator* view = view_that_makes(ir, id)) {
    chain.push_back(view);
    id = view->inputs[0];
  }
  return chain;
}

std::vector<Dim> broadcast_strides(const Shape& from, std::span<const Dim> strides,
                                   const Shape& to) {
  std::vector<Dim> result(to.dims().size());
  for (int axis = 1; axis <= from.rank(); ++axis) {
    const bool is_repeated = from[-axis] == Dim(1) && !(to[-axis] == Dim(1));
    result[result.size() - static_cast<std::size_t>(axis)] =
        is_repeated ? Dim(0) : strides[strides.size() - static_cast<std::size_t>(axis)];
  }
  return result;
}

// The strides of what `view` reads, from those of what it makes.
std::optional<std::vector<Dim>> invert(const Ir& ir, const Operator& view,
                                       const std::vector<Dim>& strides) {
  if (view.kind == OpKind::Reshape) {
    return reshape_strides(attribute<Shape>(view, "shape"), strides,
                           value_at(ir, view.inputs[0]).shape);
  }
  if (view.kind != OpKind::Transpose) {
    return std::nullopt;
  }
  std::vector<Dim> result(strides.size());
  const auto& permutation = attribute<std::vector<std::int64_t>>(view, "permutation");
  for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
    result[static_cast<std::size_t>(permutation[axis])] = strides[axis];
  }
  return result;
}

}  // namespace

std::vector<Dim> contiguous_strides(const Shape& shape) {
  std::vector<Dim> strides(shape.dims().size());
  Dim stride = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride = stride * shape.dims()[axis];
  }
  return strides;
}

std::optional<StridedView> apply_view(const Operator& view, const Shape& from,
                                      StridedView strided) {
  if (view.kind == OpKind::Reshape) {
    auto strides = reshape_strides(from, strided.strides, attribute<Shape>(view, "shape"));
    if (!strides) {
      return std::nullopt;
    }
    strided.strides = std::move(*strides);
    return strided;
  }
  if (view.kind == OpKind::Transpose) {
    std::vector<Dim> strides;
    for (const std::int64_t axis : attribute<std::vector<std::int64_t>>(view, "permutation")) {
      strides.push_back(strided.strides[static_cast<std::size_t>(axis)]);
    }
    strided.strides = std::move(strides);
    return strided;
  }
  if (view.kind == OpKind::Slice) {
    const auto axis = static_cast<std::size_t>(attribute<std::int64_t>(view, "axis"));
    strided.offset = strided.offset + attribute<Dim>(view, "start") * strided.strides[axis];
    return strided;
  }
  STOF_CHECK(view.kind == OpKind::Broadcast) << name(view.kind) << " is no view";
  strided.strides = broadcast_strides(from, strided.strides, attribute<Shape>(view, "shape"));
  return strided;
}

std::optional<StridedView> strided_view(const Ir& ir, int value) {
  const std::vector<const Operator*> chain = chain_of(ir, value);
  const int root = chain.empty() ? value : chain.back()->inputs[0];
  std::optional<StridedView> strided = StridedView{
      .root = root, .offset = 0, .strides = contiguous_strides(value_at(ir, root).shape)};
  for (std::size_t i = chain.size(); strided && i-- > 0;) {
    strided = apply_view(*chain[i], value_at(ir, chain[i]->inputs[0]).shape, std::move(*strided));
  }
  return strided;
}

std::optional<StridedView> root_for_contiguous(const Ir& ir, int value) {
  StridedView strided{
      .root = value, .offset = 0, .strides = contiguous_strides(value_at(ir, value).shape)};
  for (const Operator* view : chain_of(ir, value)) {
    std::optional<std::vector<Dim>> strides = invert(ir, *view, strided.strides);
    if (!strides) {
      return std::nullopt;
    }
    strided.root = view->inputs[0];
    strided.strides = std::move(*strides);
  }
  return strided;
}

// Axes of `from` that lie in memory as one run are joined, from the last one on; each run must then
// be filled exactly by axes of `to`.
std::optional<std::vector<Dim>> reshape_strides(const Shape& from, std::span<const Dim> strides,
                                                const Shape& to) {
  if (from.element_count() == Dim(0)) {
    return contiguous_strides(to);
  }
  std::vector<Dim> result(to.dims().size(), Dim(1));
  int to_axis = to.rank() - 1;
  for (int axis = from.rank() - 1; axis >= 0;) {
    if (from[axis] == Dim(1)) {
      --axis;
      continue;
    }
    const Dim& innermost = strides[static_cast<std::size_t>(axis)];
    Dim run = from[axis--];
    while (axis >= 0 &&
           (from[axis] == Dim(1) || strides[static_cast<std::size_t>(axis)] == innermost * run)) {
      run = run * from[axis--];
    }
    Dim filled = 1;
    while (to_axis >= 0 && !(filled == run)) {
      result[static_cast<std::size_t>(to_axis)] = innermost * filled;
      filled = filled * to[to_axis--];
    }
    if (!(filled == run)) {
      return std::nullopt;
    }
  }
  // Extents of 1 are all that is left; their strides do not matter.
  return result;
}

}  // namespace stof::graph
