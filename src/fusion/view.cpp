#include "fusion/view.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

namespace stof::fusion {

std::int64_t View::element_count() const {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t View::alignment_bytes() const {
  return std::gcd(offset * size_bytes(dtype), kAlignmentBytes);
}

bool View::is_packed() const {
  const std::vector<std::int64_t> packed = packed_strides(extents);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] != 1 && strides[axis] != packed[axis]) {
      return false;
    }
  }
  return true;
}

std::vector<std::int64_t> packed_strides(std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * extents[axis];
  }
  return strides;
}

View broadcast(View view, std::span<const std::int64_t> extents) {
  const std::size_t added = extents.size() - view.extents.size();
  view.extents.insert(view.extents.begin(), added, 1);
  view.strides.insert(view.strides.begin(), added, 0);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (view.extents[axis] != extents[axis]) {
      view.extents[axis] = extents[axis];
      view.strides[axis] = 0;
    }
  }
  return view;
}

View swap_last_axes(View view) {
  std::swap(view.extents[view.extents.size() - 1], view.extents[view.extents.size() - 2]);
  std::swap(view.strides[view.strides.size() - 1], view.strides[view.strides.size() - 2]);
  return view;
}

std::optional<View> join_axes(const View& view, std::span<const int> sizes) {
  View joined{
      .root = view.root, .dtype = view.dtype, .offset = view.offset, .extents = {}, .strides = {}};
  std::size_t axis = 0;
  for (const int size : sizes) {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
    for (int i = 0; i < size; ++i, ++axis) {
      if (view.extents[axis] == 1) {
        continue;
      }
      if (extent != 1 && stride != view.strides[axis] * view.extents[axis]) {
        return std::nullopt;
      }
      extent *= view.extents[axis];
      stride = view.strides[axis];
    }
    joined.extents.push_back(extent);
    joined.strides.push_back(stride);
  }
  // An innermost axis of one entry may have any stride; packed is what kernels like.
  if (!joined.extents.empty() && joined.extents.back() == 1) {
    joined.strides.back() = 1;
  }
  return joined;
}

std::vector<int> leading_joined(int rank, int to) {
  std::vector<int> sizes(static_cast<std::size_t>(to), 1);
  if (rank >= to) {
    sizes.front() = rank - to + 1;
  } else {
    std::fill_n(sizes.begin(), to - rank, 0);
  }
  return sizes;
}

std::vector<int> joinable_axes(std::span<const View> views) {
  std::vector<int> sizes;
  std::optional<std::size_t> outer;  // the last axis of more than one entry
  for (std::size_t axis = 0; axis < views.front().extents.size(); ++axis) {
    const bool is_single = views.front().extents[axis] == 1;
    const auto continues = [&](const View& view) {
      return view.strides[*outer] == view.strides[axis] * view.extents[axis];
    };
    const bool joins = is_single || !outer || std::all_of(views.begin(), views.end(), continues);
    if (joins && !sizes.empty()) {
      ++sizes.back();
    } else {
      sizes.push_back(1);
    }
    outer = is_single ? outer : axis;
  }
  return sizes;
}

}  // namespace stof::fusion
