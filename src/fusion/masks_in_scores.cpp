#include "fusion/masks_in_scores.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "expr/node.hpp"
#include "fusion/attention_rewriter.hpp"
#include "fusion/run_time_masks.hpp"
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
bool is_of_scores(const graph::Ir& ir, const Operator& op) {
  const bool has_16_bits = size_bytes(graph::value_at(ir, op.inputs[0]).dtype) == 2;
  const auto* score = graph::find_attribute<Expr>(op, "score");
  const Mask fixed = fixed_mask(op);
  const bool begins_with_first_key = fixed.is_full() || fixed.digest() == causal().digest();
  return has_16_bits && max_part_tiles(op) == 0 && op.captures.empty() && begins_with_first_key &&
         (score == nullptr || expr::names_used(*score).tables.empty());
}

std::int64_t planes(const graph::Ir& ir, const Operator& op) {
  const Shape& mask = graph::value_at(ir, op.inputs[kMaskData]).shape;
  return mask[0].value() * mask[1].value();
}

// Tiles of 64 queries copy rows that do not exist as the last one that does, where rows begin at
// multiples of 16 bytes: each piece of it comes from one place in L2, for one reader every 2.3 ns.
bool crowds_a_row(const mask::Extent& extent, std::int64_t planes) {
  constexpr std::int64_t kChunk = 16;
  constexpr std::int64_t kMostReaders = 1536;
  const std::int64_t missing =
      mask::ceil_div(extent.q_len, mask::kTile) * mask::kTile - extent.q_len;
  return extent.kv_len % kChunk == 0 &&
         extent.batch * extent.heads * missing > kMostReaders * planes;
}

// By times of 75 shapes on an H200, most of them with the masks of Longformer, causal and random:
// tiles of 64 queries and keys, more for wide heads. The tiles of one mask, which take 7 to 9 us to
// find out, serve all attentions that it is for. A few queries of many keys, or of few heads, have
// a kernel that takes no tiles.
bool is_small(const graph::Ir& ir, const Operator& op, std::size_t readers) {
  constexpr std::int64_t kFewQueries = 4;
  constexpr std::int64_t kSomeKeys = 512;
  constexpr std::int64_t kMostKeys = 1024;
  constexpr std::int64_t kFewHeads = 96;
  constexpr std::int64_t kMostTiles = 3072;
  constexpr std::int64_t kMostTilesOfMany = 768;
  const mask::Extent extent = extent_of(ir, op);
  const std::int64_t heads = extent.batch * extent.heads;
  if (extent.q_len <= kFewQueries &&
      (extent.kv_len > kMostKeys || (extent.kv_len >= kSomeKeys && heads <= kFewHeads))) {
    return true;
  }
  const std::int64_t columns = std::max(graph::value_at(ir, op.inputs[1]).shape[3].value(),
                                        graph::value_at(ir, op.inputs[2]).shape[3].value());
  const std::int64_t tiles = heads * mask::ceil_div(extent.q_len, mask::kTile) *
                             mask::ceil_div(extent.kv_len, mask::kTile);
  const std::int64_t work = tiles * (1 + mask::ceil_div(columns, mask::kTile)) / 2;
  return extent.kv_len <= kMostKeys && !crowds_a_row(extent, planes(ir, op)) &&
         work <= (readers == 1 ? kMostTiles : kMostTilesOfMany);
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
  op.inputs.resize(kMaskData);
  for (const char* attribute : {"mask_form", "max_part_tiles", "like"}) {
    op.attributes.erase(attribute);
  }
}

}  // namespace

// A layout that one attention needs is there for others of the same mask.
graph::Ir with_masks_in_scores(graph::Ir ir) {
  std::map<std::pair<int, std::string>, std::vector<Operator*>> readers;
  for (Operator& op : ir.operators) {
    if (has_dense_mask(op)) {
      readers[{op.inputs[kMaskData], fixed_mask(op).digest()}].push_back(&op);
    }
  }
  for (const auto& entry : readers) {
    const std::vector<Operator*>& ops = entry.second;
    const bool are_of_scores = std::ranges::all_of(ops, [&](const Operator* op) {
      return is_of_scores(ir, *op) && is_small(ir, *op, ops.size());
    });
    for (Operator* op : ops) {
      if (are_of_scores) {
        put_mask_into_score(ir, *op);
      }
    }
  }
  return ir;
}

}  // namespace stof::fusion
