#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "fusion/view.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

bool is_view(const graph::Operator& op);

// The value and the chain of views that alone reads it, in order.
std::vector<int> view_chain(const graph::Ir& ir, int value);

// How the values of a static graph lie in memory. Every value that no view makes is packed in some
// order of its axes; views are strides over it. From one thread.
class Placement {
 public:
  // Attention writes its output in the order in which the views behind it are packed, so that
  // merging heads costs nothing.
  explicit Placement(const graph::Ir& ir);

  // Nothing where strides cannot say it: then a copy of what `blocking_input` gives does it.
  std::optional<View> view(int value) const;

  // The input of the first view on the way to the value that strides cannot express.
  int blocking_input(int value) const;

  // From now on views of `value` are of a packed copy, which is a root of its own; its id.
  int add_copy(int value);
  // Those that were added when there were that many roots, or later.
  void forget_copies(int root_count);
  // The packed copy, where there is one.
  std::optional<View> copy_of(int value) const;

  const std::vector<std::int64_t>& extents(int value) const {
    return extents_.at(static_cast<std::size_t>(value));
  }
  // The root as a tensor of its own: of a value of the graph, or of a copy.
  View root(int id) const;
  int root_count() const { return static_cast<int>(extents_.size()); }

 private:
  std::optional<View> find_view(int value) const;

  const graph::Ir& ir_;
  mutable std::map<int, std::optional<View>> views_;  // that were asked for, since the last copy
  std::vector<std::vector<std::int64_t>> extents_;    // of values, then of copies
  std::vector<DType> dtypes_;
  std::map<int, std::vector<std::int64_t>> root_strides_;  // where they are not packed
  std::map<int, int> copies_;                              // value -> id of its copy
};

}  // namespace stof::fusion
