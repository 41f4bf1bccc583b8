#include "fusion/masks_in_scores.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "expr/node.hpp"
#include "fusion/attention_rewriter.hpp"
#include "fusion/run_time_masks.hpp"
#include "fusion/segment_graph.hpp"
#include "graph/canonical.hpp"
#include "graph/op_info.hpp"
#include "mask/bits.hpp"
#include "mask/layout.hpp"
#include "stof/expr.hpp"
#include "stof/mask.hpp"

namespace stof::fusion {

namespace {

using graph::Operator;

bool has_dense_mask(const Operator& op) {
  const auto* form = graph::find_attribute<std::string>(op, "mask_form");
  return op.kind == graph::OpKind::Attention && form != nullptr &&
         *form == graph::name(MaskForm::Dense);
}

// Whether the mask can be part of the score: a bound on its tiles asks for them, a score that reads
// tensors or tables would wait for it, bands that do not begin with the first key are in no steps
// of whole chunks, and only kernels for 16 bits see all keys as fast as those that the mask shows.
// Of many tiles it never is faster, and takes long to predict.
bool can_be_of_scores(const graph::Ir& ir, const Operator& op) {
  const bool has_16_bits = size_bytes(graph::value_at(ir, op.inputs[0]).dtype) == 2;
  const auto* score = graph::find_attribute<Expr>(op, "score");
  const Mask fixed = fixed_mask(op);
  const bool begins_with_first_key = fixed.is_full() || fixed.digest() == causal().digest();
  constexpr std::int64_t kMostTiles = 1 << 16;
  const mask::Extent extent = extent_of(ir, op);
  const std::int64_t tiles =
      mask::ceil_div(extent.q_len, mask::kTile) * mask::ceil_div(extent.kv_len, mask::kTile);
  return has_16_bits && max_part_tiles(op) == 0 && op.captures.empty() && begins_with_first_key &&
         tiles <= kMostTiles && (score == nullptr || expr::names_used(*score).tables.empty());
}

void put_mask_into_score(const graph::Ir& ir, Operator& op) {
  const std::string name = "mask";
  const int data = op.inputs[kMaskData];
  const Shape& shape = graph::value_at(ir, data).shape;
  const Expr is_seen = Capture(name, DType::Bool, 4)(
      shape[0].value() == 1 ? Expr(0) : batch_index(),
      shape[1].value() == 1 ? Expr(0) : head_index(), query_position(), key_position());
  const auto* given = graph::find_attribute<Expr>(op, "score");
  op.attributes["score"] = select(is_seen, given == nullptr ? score() : *given,
                                  -std::numeric_limits<double>::infinity());
  op.captures.emplace(name, data);
  op.inputs.resize(op.inputs[kMaskData - 1] < 0 ? kMaskData - 1 : kMaskData);
  for (const char* attribute : {"mask_form", "max_part_tiles", "like"}) {
    op.attributes.erase(attribute);
  }
}

bool is_faster_in_scores(const graph::Ir& ir, const std::vector<int>& attentions,
                         const PredictUs& predict_us, std::map<base::Digest, bool>& known) {
  graph::Ir alone = segment_graph(ir, attentions);
  const auto [found, is_new] = known.try_emplace(graph::canonicalise(alone).digest);
  if (!is_new) {
    return found->second;
  }
  const double by_tiles_us = predict_us(alone);
  for (Operator& op : alone.operators) {
    if (has_dense_mask(op)) {
      put_mask_into_score(alone, op);
    }
  }
  found->second = predict_us(alone) < by_tiles_us;
  return found->second;
}

}  // namespace

graph::Ir with_masks_in_scores(graph::Ir ir, const PredictUs& predict_us) {
  std::map<std::pair<int, std::string>, std::vector<int>> readers;
  for (std::size_t i = 0; i < ir.operators.size(); ++i) {
    const Operator& op = ir.operators[i];
    if (has_dense_mask(op)) {
      readers[{op.inputs[kMaskData], fixed_mask(op).digest()}].push_back(static_cast<int>(i));
    }
  }
  std::map<base::Digest, bool> known;  // what is faster, of equal attentions
  for (const auto& entry : readers) {
    const std::vector<int>& attentions = entry.second;
    const auto at = [&](int index) -> Operator& {
      return ir.operators[static_cast<std::size_t>(index)];
    };
    const bool all_can = std::ranges::all_of(
        attentions, [&](int attention) { return can_be_of_scores(ir, at(attention)); });
    if (all_can && is_faster_in_scores(ir, attentions, predict_us, known)) {
      for (const int attention : attentions) {
        put_mask_into_score(ir, at(attention));
      }
    }
  }
  return ir;
}

}  // namespace stof::fusion
