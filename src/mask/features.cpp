#include "mask/features.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "expr/node.hpp"
#include "mask/node.hpp"
#include "mask/rows.hpp"

namespace stof::mask {

namespace {

// Bits that are read cost less than operations on every pair, unless there are very many.
constexpr int kMaxInlineNodes = 32;
constexpr std::int64_t kManyBitmaps = std::int64_t{1} << 17;  // 64 MiB

bool is_cheap(const expr::Node& node) {
  constexpr std::array kDear = {expr::Op::Table, expr::Op::Hash, expr::Op::Draw, expr::Op::Keep};
  return std::ranges::find(kDear, node.op) == kDear.end() &&
         std::ranges::all_of(node.operands,
                             [](const Expr& operand) { return is_cheap(operand.node()); });
}

MaskClass classify(const Mask& mask, const MaskFeatures& features) {
  if (mask.has_captures()) {
    return mask.is_expression() ? MaskClass::InlinePredicate : MaskClass::Bitmap;
  }
  if (features.full_tiles == features.tiles) {
    return MaskClass::None;
  }
  if (features.interval_rows) {
    return MaskClass::IntervalRows;
  }
  const auto* predicate = std::get_if<Expr>(&mask.node().form);
  return features.distinct_bitmaps > kManyBitmaps && predicate &&
                 predicate->node().size <= kMaxInlineNodes && is_cheap(predicate->node())
             ? MaskClass::InlinePredicate
             : MaskClass::Bitmap;
}

void measure_rows(const MaskLayout& layout, MaskFeatures& features) {
  RowSpans spans = row_spans(layout);
  features.interval_rows = spans.are_intervals();
  std::vector<std::int32_t>& keys = spans.count;
  const auto rows = static_cast<double>(keys.size());
  features.mean_keys =
      static_cast<double>(std::accumulate(keys.begin(), keys.end(), std::int64_t{0})) / rows;
  features.density = features.mean_keys / static_cast<double>(layout.extent.kv_len);
  const auto percentile = [&](std::int64_t p) {
    const auto at = keys.begin() + p * (std::ssize(keys) - 1) / 100;
    std::ranges::nth_element(keys, at);
    return std::int64_t{*at};
  };
  features.min_keys = percentile(0);
  features.median_keys = percentile(50);
  features.percentile_90_keys = percentile(90);
  features.percentile_99_keys = percentile(99);
  features.max_keys = percentile(100);
  features.empty_rows = std::ranges::count(keys, 0);
}

}  // namespace

std::string_view name(MaskClass mask_class) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "interval_rows", "inline_predicate",
                                                      "bitmap"};
  return kNames[static_cast<std::size_t>(mask_class)];
}

MaskFeatures measure(const Mask& mask, const MaskLayout& layout) {
  MaskFeatures features;
  features.extent = layout.extent;
  features.mask_batch = layout.mask_batch;
  features.mask_heads = layout.mask_heads;
  features.tiles = layout.row_count() * layout.tile_cols;
  features.full_tiles = std::ssize(layout.full.col_idx);
  features.part_tiles = std::ssize(layout.part.col_idx);
  features.distinct_bitmaps = std::ssize(layout.bitmaps) / kTileWords;
  for (std::int64_t r = 0; r < layout.row_count(); ++r) {
    features.longest_tile_row =
        std::max<std::int64_t>(features.longest_tile_row, std::ssize(layout.load.row(r)));
  }
  measure_rows(layout, features);
  return classified(mask, features);
}

MaskFeatures classified(const Mask& mask, MaskFeatures features) {
  if (const auto* predicate = std::get_if<Expr>(&mask.node().form)) {
    features.predicate_operations = predicate->node().size;
  }
  features.mask_class = classify(mask, features);
  return features;
}

MaskFeatures with_planes(MaskFeatures features, std::int64_t mask_batch, std::int64_t mask_heads) {
  const std::int64_t before = features.mask_batch * features.mask_heads;
  const std::int64_t after = mask_batch * mask_heads;
  for (std::int64_t* count : {&features.tiles, &features.full_tiles, &features.part_tiles,
                              &features.distinct_bitmaps, &features.empty_rows}) {
    *count = *count * after / before;
  }
  features.mask_batch = mask_batch;
  features.mask_heads = mask_heads;
  return features;
}

}  // namespace stof::mask
