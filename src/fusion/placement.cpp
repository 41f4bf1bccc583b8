#include "fusion/placement.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/check.hpp"
#include "graph/op_info.hpp"
#include "graph/view.hpp"

namespace stof::fusion {

namespace {

std::vector<std::int64_t> numbers(std::span<const Dim> dims) {
  std::vector<std::int64_t> values;
  values.reserve(dims.size());
  for (const Dim& dim : dims) {
    values.push_back(dim.value());
  }
  return values;
}

// The view that alone reads each value; -1 where there is none.
std::vector<int> views_behind(const graph::Ir& ir) {
  constexpr int kUnread = -2;
  std::vector<int> readers(ir.values.size(), kUnread);
  for (int index = 0; index < std::ssize(ir.operators); ++index) {
    for (const int input : ir.operators[static_cast<std::size_t>(index)].inputs) {
      if (input >= 0) {
        int& reader = readers[static_cast<std::size_t>(input)];
        reader = reader == kUnread || reader == index ? index : -1;
      }
    }
  }
  for (int& reader : readers) {
    reader = reader >= 0 && is_view(ir.operators[static_cast<std::size_t>(reader)]) ? reader : -1;
  }
  return readers;
}

std::vector<int> follow_views(const graph::Ir& ir, const std::vector<int>& views, int value) {
  std::vector<int> chain = {value};
  for (int view = views[static_cast<std::size_t>(value)]; view >= 0;
       view = views[static_cast<std::size_t>(chain.back())]) {
    chain.push_back(ir.operators[static_cast<std::size_t>(view)].outputs[0]);
  }
  return chain;
}

}  // namespace

bool is_view(const graph::Operator& op) {
  return graph::op_info(op.kind).op_class == graph::OpClass::View;
}

std::vector<int> view_chain(const graph::Ir& ir, int value) {
  return follow_views(ir, views_behind(ir), value);
}

Placement::Placement(const graph::Ir& ir) : ir_(ir) {
  for (const auto& value : ir.values) {
    extents_.push_back(numbers(value->shape.dims()));
    dtypes_.push_back(value->dtype);
  }
  const std::vector<int> views = views_behind(ir);
  for (const graph::Operator& op : ir.operators) {
    if (op.kind != graph::OpKind::Attention) {
      continue;
    }
    // As the last view wants it that leaves the channels of a head together.
    const std::vector<int> chain = follow_views(ir, views, op.outputs[0]);
    for (auto end = chain.rbegin(); end != chain.rend(); ++end) {
      const auto root = graph::root_for_contiguous(ir, *end);
      if (root && root->root == op.outputs[0] && root->strides.back() == Dim(1)) {
        root_strides_.emplace(root->root, numbers(root->strides));
        break;
      }
    }
  }
}

View Placement::root(int id) const {
  View view{.root = id,
            .dtype = dtypes_.at(static_cast<std::size_t>(id)),
            .offset = 0,
            .extents = extents(id),
            .strides = {}};
  const auto strides = root_strides_.find(id);
  view.strides = strides == root_strides_.end() ? packed_strides(view.extents) : strides->second;
  return view;
}

std::optional<View> Placement::copy_of(int value) const {
  const auto copy = copies_.find(value);
  return copy == copies_.end() ? std::nullopt : std::optional(root(copy->second));
}

std::optional<View> Placement::view(int value) const {
  const auto known = views_.find(value);
  return known != views_.end() ? known->second
                               : views_.emplace(value, find_view(value)).first->second;
}

std::optional<View> Placement::find_view(int value) const {
  const int producer = ir_.values[static_cast<std::size_t>(value)]->producer;
  if (auto copy = copy_of(value)) {
    return copy;
  }
  if (producer < 0 || !is_view(ir_.operators[static_cast<std::size_t>(producer)])) {
    return root(value);
  }
  // One view at a time, so that the copies on the way are seen.
  const graph::Operator& op = ir_.operators[static_cast<std::size_t>(producer)];
  std::optional<View> from = view(op.inputs[0]);
  if (!from) {
    return std::nullopt;
  }
  const std::vector<Dim> strides(from->strides.begin(), from->strides.end());
  const auto strided =
      graph::apply_view(op, Shape::of(from->extents), {.root = 0, .offset = 0, .strides = strides});
  if (!strided) {
    return std::nullopt;
  }
  return View{.root = from->root,
              .dtype = from->dtype,
              .offset = from->offset + strided->offset.value(),
              .extents = extents(value),
              .strides = numbers(strided->strides)};
}

int Placement::blocking_input(int value) const {
  for (;;) {
    const int producer = ir_.values[static_cast<std::size_t>(value)]->producer;
    STOF_CHECK(producer >= 0) << "no view blocks";
    const int input = ir_.operators[static_cast<std::size_t>(producer)].inputs[0];
    if (view(input)) {
      return input;
    }
    value = input;
  }
}

int Placement::add_copy(int value) {
  views_.clear();
  const int id = root_count();
  extents_.push_back(extents(value));
  dtypes_.push_back(dtypes_[static_cast<std::size_t>(value)]);
  copies_.emplace(value, id);
  return id;
}

void Placement::forget_copies(int root_count) {
  if (std::erase_if(copies_, [&](const auto& copy) { return copy.second >= root_count; }) > 0) {
    views_.clear();
  }
  extents_.resize(static_cast<std::size_t>(root_count));
  dtypes_.resize(static_cast<std::size_t>(root_count));
}

}  // namespace stof::fusion
