#pragma once

#include <memory>

#include "fusion/mask_arrays.hpp"
#include "fusion/modifier.hpp"
#include "fusion/placement.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Mask and score of one attention, as its kernels take them.
struct AttentionMask {
  std::shared_ptr<MaskArrays> arrays;  // shared with attentions of the same mask
  Modifier modifier;

  const mask::MaskFeatures& features() const { return arrays->features(); }
};

// Throws GraphError where the mask does not fit the shapes, or has a form that no kernel takes.
AttentionMask make_attention_mask(const graph::Ir& ir, const graph::Operator& attention,
                                  const Placement& placement, MaskArraysByMask& masks);

}  // namespace stof::fusion
