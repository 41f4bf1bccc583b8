#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mask/layout.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

// What code a kernel needs for the mask; each is the cheapest of those that will do.
enum class MaskClass : std::uint8_t {
  None,             // every existing pair is seen
  IntervalRows,     // each row sees one run of keys, or none: two integers a row
  InlinePredicate,  // the expression, compiled into the kernel
  Bitmap,           // bits of part tiles
};

std::string_view name(
    MaskClass mask_class);  // "none", "interval_rows", "inline_predicate", "bitmap"

// Counts are of the mask_batch * mask_heads planes of the layout, and of 64 x 64 tiles.
struct MaskFeatures {
  MaskClass mask_class = MaskClass::None;
  Extent extent;
  std::int64_t mask_batch = 1;
  std::int64_t mask_heads = 1;
  double density = 0;  // share of the existing pairs that are seen
  std::int64_t tiles = 0;
  std::int64_t full_tiles = 0;
  std::int64_t part_tiles = 0;
  std::int64_t active_tiles() const { return full_tiles + part_tiles; }
  std::int64_t distinct_bitmaps = 0;
  std::int64_t longest_tile_row = 0;  // most full and part tiles of a tile row
  bool interval_rows = false;
  int predicate_operations = 0;  // nodes of the expression; 0 where the mask holds data

  // Keys that a query row sees. The p-th percentile is entry floor(p (n - 1) / 100) of the n rows
  // in ascending order.
  double mean_keys = 0;
  std::int64_t min_keys = 0;
  std::int64_t median_keys = 0;
  std::int64_t percentile_90_keys = 0;
  std::int64_t percentile_99_keys = 0;
  std::int64_t max_keys = 0;
  std::int64_t empty_rows = 0;

  friend bool operator==(const MaskFeatures&, const MaskFeatures&) = default;
};

// `layout` is that of the mask. The class: None where all tiles are full; IntervalRows where rows
// are intervals; else Bitmap, but InlinePredicate for an expression of at most 32 nodes without
// tables and random bits whose bitmaps would take more than 64 MiB. What a mask with captures sees
// is another thing on each run: it is InlinePredicate if it is an expression, else Bitmap.
MaskFeatures measure(const Mask& mask, const MaskLayout& layout);

// Features of which the counts are there, with the class and predicate_operations too.
MaskFeatures classified(const Mask& mask, MaskFeatures features);

// The counts of that many planes, which are like those that were counted.
MaskFeatures with_planes(MaskFeatures features, std::int64_t mask_batch, std::int64_t mask_heads);

}  // namespace stof::mask
