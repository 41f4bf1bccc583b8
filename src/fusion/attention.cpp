#include "fusion/attention.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "graph/op_info.hpp"
#include "mask/node.hpp"
#include "stof/error.hpp"

namespace stof::fusion {

namespace {

constexpr std::size_t kMaskData = 4;  // the input of attention that carries a run-time mask
constexpr const char* kMaskDataName = "mask.data";

// What a mask that arrives at run time shows, over the tensor that carries it.
Expr run_time_predicate(std::string_view form, const Capture& data) {
  if (form == graph::name(MaskForm::KeyLengths)) {
    return key_position() < data(batch_index());
  }
  if (form == graph::name(MaskForm::Dense)) {
    const Expr keep = data(batch_index(), head_index(), query_position(), key_position());
    return keep.type() == ScalarType::Bool ? keep : keep != 0;
  }
  throw GraphError(fmt::format(
      "lower: a mask that arrives as {} has no kernel yet, the GPU takes key_lengths and dense",
      form));
}

mask::Extent extent_of(const graph::Operator& attention, const Placement& placement) {
  const std::vector<std::int64_t>& q = placement.extents(attention.inputs[0]);
  const std::vector<std::int64_t>& k = placement.extents(attention.inputs[1]);
  return {.batch = q[0], .heads = q[1], .q_len = q[2], .kv_len = k[2]};
}

// Of a mask that is another one on each run.
Expr predicate_of(const graph::Ir& ir, const graph::Operator& attention, const Mask& fixed,
                  const std::string* form) {
  if (!fixed.is_expression()) {
    throw GraphError(
        "lower: a mask that holds data has no kernel yet where another arrives at run time");
  }
  Expr predicate = std::get<Expr>(fixed.node().form);
  if (form == nullptr) {
    return predicate;
  }
  const graph::Value& data = *ir.values[static_cast<std::size_t>(attention.inputs.at(kMaskData))];
  return predicate &&
         run_time_predicate(*form, Capture(kMaskDataName, data.dtype, data.shape.rank()));
}

}  // namespace

AttentionMask make_attention_mask(const graph::Ir& ir, const graph::Operator& attention,
                                  const Placement& placement, MaskArraysByMask& masks) {
  const auto* given = graph::find_attribute<Mask>(attention, "mask");
  const Mask fixed = given == nullptr ? Mask() : *given;
  const auto* form = graph::find_attribute<std::string>(attention, "mask_form");
  const mask::Extent extent = extent_of(attention, placement);
  const bool is_known = form == nullptr && !fixed.has_captures();
  AttentionMask mask{
      .arrays = is_known ? masks.get(fixed, extent) : std::make_shared<MaskArrays>(extent),
      .modifier = Modifier(ir, placement)};
  Modifier::Captures captures = attention.captures;
  if (form != nullptr) {
    captures.emplace(kMaskDataName, attention.inputs.at(kMaskData));
  }
  if (mask.features().mask_class == mask::MaskClass::InlinePredicate) {
    mask.modifier.add("predicate", predicate_of(ir, attention, fixed, form), captures);
  }
  if (const auto* score = graph::find_attribute<Expr>(attention, "score")) {
    mask.modifier.add("score", *score, captures);
  }
  return mask;
}

}  // namespace stof::fusion
