#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stof/dtype.hpp"

namespace stof::fusion {

// Kernels may take it that the tensors of their ports start at multiples of this.
inline constexpr std::int64_t kAlignmentBytes = 16;

// A tensor as kernels see it: extents and strides, in elements, over the memory of a value.
struct View {
  int root = -1;  // id of the value that owns the memory
  DType dtype = DType::Float32;
  std::int64_t offset = 0;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;

  int rank() const { return static_cast<int>(extents.size()); }
  std::int64_t element_count() const;
  // That the first element is at a multiple of, at most kAlignmentBytes.
  std::int64_t alignment_bytes() const;
  // Row-major without gaps.
  bool is_packed() const;
};

std::vector<std::int64_t> packed_strides(std::span<const std::int64_t> extents);

// As NumPy broadcasts.
View broadcast(View view, std::span<const std::int64_t> extents);

View swap_last_axes(View view);

// Joins neighbouring axes: group i becomes one axis and has sizes[i] of the view's, in order; an
// empty group becomes an axis of extent 1. Nothing where strides cannot say it.
std::optional<View> join_axes(const View& view, std::span<const int> sizes);

// The sizes that join the leading axes of a tensor of that rank, so that `to` axes are left; where
// it has fewer, axes of extent 1 come in front.
std::vector<int> leading_joined(int rank, int to);

// The sizes that join as many axes as all the views, of equal extents, allow.
std::vector<int> joinable_axes(std::span<const View> views);

}  // namespace stof::fusion
