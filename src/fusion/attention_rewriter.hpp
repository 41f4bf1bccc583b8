#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "graph/ir.hpp"
#include "mask/extent.hpp"
#include "stof/expr.hpp"
#include "stof/tensor.hpp"

namespace stof::fusion {

// Whether an operator is an attention with no mask or one that is an expression of positions and
// known when the graph is built. Its operands are q, k and v, and numbers of keys where it has
// them; log-sum-exps may be a second output.
bool has_mask_of_positions(const graph::Operator& op);
// The same, and no score modifier.
bool is_plain(const graph::Operator& op);
// Of an attention whose shapes are static.
mask::Extent extent_of(const graph::Ir& ir, const graph::Operator& attention);
// What a query of such an attention sees; true where it has no mask.
Expr predicate_of(const graph::Operator& attention);

// Makes a graph in which an attention works on views of its operands; the other operators stay.
class AttentionRewriter {
 public:
  // The attention stands at `place`.
  AttentionRewriter(const graph::Ir& ir, std::size_t place) : ir_(ir), place_(place) {}

  // `add_attention` adds what takes its place. Once.
  graph::Ir run(
      const std::function<void(AttentionRewriter&, const graph::Operator&)>& add_attention);

  const Shape& shape(int value) const;
  void add(graph::Operator op);
  // One that nothing makes yet, of the type of another; its id.
  int add_value(int like, std::span<const std::int64_t> extents);
  void add_reshape(int from, int to);
  // Exchanges the second and the third axis.
  void add_transpose(int from, int to);

 private:
  graph::Ir ir_;
  std::size_t place_;
};

// Puts in the place of the attention at `place` what `add_attention` adds, unless what lies in
// memory as strides say, or an output that lies packed, would then need a copy, and none is allowed
// by `may_copy`.
void rewrite_attention(
    graph::Ir& ir, std::size_t place,
    const std::function<void(AttentionRewriter&, const graph::Operator&)>& add_attention,
    bool may_copy = false);

}  // namespace stof::fusion
