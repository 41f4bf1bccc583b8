#include "fusion/attention.hpp"

#include "graph/op_info.hpp"
#include "mask/node.hpp"

namespace stof::fusion {

namespace {

// The class and planes are those of the arrays, whatever is expected.
mask::MaskFeatures features_of(const MaskArrays& arrays, mask::MaskFeatures expected) {
  expected.mask_class = arrays.features().mask_class;
  return mask::with_planes(expected, arrays.features().mask_batch, arrays.features().mask_heads);
}

}  // namespace

AttentionMask make_attention_mask(const graph::Ir& ir, const graph::Operator& attention,
                                  const Placement& placement, MaskArraysByMask& masks) {
  const auto* given = graph::find_attribute<Mask>(attention, "mask");
  const Mask fixed = given == nullptr ? Mask() : *given;
  const mask::Extent extent = extent_of(attention, placement);
  AttentionMask mask{.arrays = nullptr,
                     .run_time = run_time_mask(ir, attention, placement, masks),
                     .expected = {},
                     .modifier = Modifier(ir, placement, extent)};
  if (mask.run_time) {
    mask.expected = mask.run_time->features;
  } else {
    mask.arrays =
        fixed.has_captures() ? std::make_shared<MaskArrays>(extent) : masks.get(fixed, extent);
    mask.expected = mask.arrays->features();
    if (graph::find_attribute<Mask>(attention, "like") != nullptr) {
      mask.expected =
          features_of(*mask.arrays, expected_mask(attention, fixed, extent, masks)->features());
    }
    if (mask.expected.mask_class == mask::MaskClass::InlinePredicate) {
      mask.modifier.add("predicate", std::get<Expr>(fixed.node().form), attention.captures);
    }
  }
  if (const auto* score = graph::find_attribute<Expr>(attention, "score")) {
    mask.modifier.add("score", *score, attention.captures);
  }
  return mask;
}

}  // namespace stof::fusion
