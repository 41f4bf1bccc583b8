#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "mask/evaluate.hpp"
#include "mask/extent.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

inline constexpr std::int64_t kTile = 64;       // rows and columns of an outer tile
inline constexpr std::int64_t kInnerTile = 8;   // rows and columns of an inner tile
inline constexpr std::int64_t kTileWords = 64;  // inner tiles of an outer tile, one word each

// A compressed list of tile columns per tile row: those of row r are
// col_idx[row_ptr[r]] … col_idx[row_ptr[r + 1] - 1], ascending.
struct TileRows {
  std::vector<std::int32_t> row_ptr;
  std::vector<std::int32_t> col_idx;

  std::span<const std::int32_t> row(std::int64_t r) const {
    return std::span(col_idx).subspan(row_ptr[r], row_ptr[r + 1] - row_ptr[r]);
  }

  friend bool operator==(const TileRows&, const TileRows&) = default;
};

// The two-level format of the paper (Wang et al., "STOF", 2026, section 4.2). These rules are
// exact: whoever builds a layout, on whatever device, gets the same arrays.
//
// Tiles. Pairs (q, k) are cut into tiles of 64 x 64; tile (i, j) holds q in [64 i, 64 i + 64) and k
// in [64 j, 64 j + 64), of which those with q < q_len and k < kv_len exist. A tile is empty if no
// existing pair of it is seen, full if all are, part otherwise. So a tile that hangs over the
// lengths may be full: a kernel bounds its keys itself.
//
// Rows. Tile row r = (b * mask_heads + h) * tile_rows + i, where mask_batch and mask_heads are 1
// where the mask does not depend on the batch element or head (Mask::uses_batch, uses_head). `full`
// and `part` list the tiles of that class, `load` both.
//
// Bitmaps. part_bitmap[p] is the bitmap of the p-th part tile, in the order of part.col_idx. Equal
// bitmaps are stored once, numbered by their first use in that order. Bitmap n is words 64 n to
// 64 n + 63 of `bitmaps`: word (c / 8) * 8 + r / 8 is the inner tile that holds row r and column c
// of the tile (inner tiles column by column), and bit (r % 8) * 8 + c % 8 of it says whether they
// are seen. Pairs that do not exist are 0.
struct MaskLayout {
  Extent extent;
  std::int64_t mask_batch = 1;
  std::int64_t mask_heads = 1;
  std::int64_t tile_rows = 0;  // ceil(q_len / 64)
  std::int64_t tile_cols = 0;  // ceil(kv_len / 64)
  TileRows full;
  TileRows part;
  TileRows load;
  std::vector<std::int32_t> part_bitmap;
  std::vector<std::uint64_t> bitmaps;

  // In tile rows; 0 where all share one.
  std::int64_t batch_stride() const { return mask_batch == 1 ? 0 : mask_heads * tile_rows; }
  std::int64_t head_stride() const { return mask_heads == 1 ? 0 : tile_rows; }
  std::int64_t row_count() const { return mask_batch * mask_heads * tile_rows; }

  std::span<const std::uint64_t, kTileWords> bitmap(std::int64_t n) const {
    return std::span(bitmaps).subspan(n * kTileWords).first<kTileWords>();
  }

  friend bool operator==(const MaskLayout&, const MaskLayout&) = default;
};

// The layout of a mask that differs between batch elements or heads, with no row listed yet. Throws
// GraphError where there are more tiles than 32 bits count.
MaskLayout empty_layout(const Extent& extent, bool by_batch, bool by_head);

// Throws GraphError: the mask does not fit the extent (check_extent); no query sees any key; more
// tiles than 32 bits count, or about more than 2^25 that would be looked at pair by pair; a capture
// without a value.
MaskLayout build_layout(const Mask& mask, const Extent& extent, const CaptureValues& captures = {});

// Throws GraphError for a layout of the mask in which no query sees any key.
void check_any_seen(const Mask& mask, const MaskLayout& layout);

// 64 keys of a row, the lowest key in the lowest bit, for each row of a bitmap.
std::array<std::uint64_t, kTile> bitmap_rows(std::span<const std::uint64_t, kTileWords> bitmap);
std::array<std::uint64_t, kTileWords> bitmap_of_rows(std::span<const std::uint64_t, kTile> rows);

// The bitmap in the order in which the threads of four warps hold a 64 x 64 accumulator of
// wgmma m64nNk16, or of mma m16n8k16 with 16 rows a warp. Bit 4 j + e of word 32 w + lane is
//   row 16 w + lane / 4 + 8 (e / 2), column 8 j + 2 (lane % 4) + e % 2,   j in 0 … 7, e in 0 … 3,
// so that bit n belongs to the n-th accumulator register of the thread.
std::array<std::uint32_t, 128> lane_ordered_bitmap(
    std::span<const std::uint64_t, kTileWords> bitmap);

}  // namespace stof::mask
