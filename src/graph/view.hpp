#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/ir.hpp"

// Where the elements of views lie in memory, so that kernels read and write through strides and no
// view is ever a copy of its own.
namespace stof::graph {

// A value as strides over the memory of another one, in elements.
struct StridedView {
  int root = -1;  // a value that no view makes; itself where the value is one
  Dim offset;
  std::vector<Dim> strides;  // one an axis of the value, 0 where it is broadcast
};

// Row-major strides.
std::vector<Dim> contiguous_strides(const Shape& shape);

// The value through its chain of views over a contiguous root. Nothing where strides cannot say it,
// such as a reshape that joins axes which a transpose has parted.
std::optional<StridedView> strided_view(const Ir& ir, int value);

// What a view operator makes of a tensor of that shape and place. Nothing as above.
std::optional<StridedView> apply_view(const Operator& view, const Shape& from, StridedView strided);

// How the root of a value must lie for the value to be contiguous: the strides of the root, and
// those by which a kernel that makes the root writes the value without a copy. Nothing where the
// chain slices or broadcasts, or where no strides do it.
std::optional<StridedView> root_for_contiguous(const Ir& ir, int value);

// The strides of a strided tensor in another shape of as many elements. Nothing where it would have
// to be copied; with symbolic extents, also where that cannot be told.
std::optional<std::vector<Dim>> reshape_strides(const Shape& from, std::span<const Dim> strides,
                                                const Shape& to);

}  // namespace stof::graph
