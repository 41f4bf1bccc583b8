#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mask/rows.hpp"
#include "mask_layout/views.hpp"

namespace stof::mask_layout {

// Why a layout holds nothing. Bits of LayoutCounts::status; 0 where all is well.
inline constexpr std::int32_t kPartTilesOverflow = 1;  // more part tiles than there is room for
inline constexpr std::int32_t kKeysOverflow = 2;       // more seen pairs than there is room for
inline constexpr std::int32_t kInvalidData = 4;        // lengths, offsets or columns out of range

// What mask::MaskFeatures counts. The rows and what follows only where rows are asked for.
struct LayoutCounts {
  std::int32_t status = 0;
  std::int32_t open_tiles = 0;  // that intervals do not settle; of a layout built once
  std::int32_t full_tiles = 0;
  std::int32_t part_tiles = 0;
  std::int32_t distinct_bitmaps = 0;
  std::int32_t longest_tile_row = 0;
  std::int32_t empty_rows = 0;
  std::int32_t broken_rows = 0;  // that see two intervals or more
  std::int32_t keys_at[5] = {};  // keys of a row: least, percentiles 50, 90 and 99, most
  std::int64_t seen_pairs = 0;
};

// What a build tells the host, in memory that both read, where its layout holds nothing; nothing is
// written where all is well.
struct LayoutReport {
  std::int32_t status = 0;      // as LayoutCounts::status
  std::int32_t part_tiles = 0;  // that there would have been
};

// The lists of mask::TileRows.
struct TileRows {
  std::int32_t* row_ptr = nullptr;  // [row_count + 1]
  std::int32_t* col_idx = nullptr;
};

// As mask::AttentionTiles.
struct AttentionTiles {
  std::int64_t tile_q = 0;
  std::int64_t q_tiles = 0;
  std::int32_t* row_ptr = nullptr;
  std::int32_t* tile_col = nullptr;
  std::int32_t* tile_bitmap = nullptr;
  std::int32_t* order = nullptr;

  constexpr std::int64_t parts() const { return tile_q < 64 ? 1 : tile_q / 64; }
};

// As mask::RowSpans, and with keys mask::KeyRows and the order of its rows; null where they are not
// asked for.
struct Rows {
  std::int32_t* first = nullptr;
  std::int32_t* end = nullptr;
  std::int32_t* count = nullptr;
  std::int32_t* order = nullptr;
  std::int32_t* key_row_ptr = nullptr;
  std::int32_t* key_col = nullptr;
};

// A mask::MaskLayout on the GPU, array for array, with what is derived from it: device pointers
// into memory that another owns. How many entries the lists have is known there, in row_ptr and
// counts. Where counts->status is not 0 the lists are empty.
struct Layout {
  Grid grid;
  LayoutCounts* counts = nullptr;
  TileRows full;
  TileRows part;
  TileRows load;
  std::int32_t* part_bitmap = nullptr;
  std::uint64_t* bitmaps = nullptr;       // [n][64]
  std::uint32_t* lane_bitmaps = nullptr;  // [n][128]
  // Of every tile [row_count][tile_cols]: mask::kAllSeen, kNoneSeen or the number of its bitmap.
  std::int32_t* tile_codes = nullptr;
  std::vector<AttentionTiles> attention_tiles;
  Rows rows;
};

// What to derive besides the lists of the two-level layout.
struct LayoutRequest {
  std::vector<std::int64_t> tile_q = {};  // an AttentionTiles of each: 16, 32, 64, 128, 192 or 256
  bool rows = false;                      // Rows without the keys
  bool key_rows = false;                  // Rows
  // Of a RunTimeLayout of documents, which see what this band shows besides: Rows.first and
  // Rows.end. Lists of tiles are built where they are asked for too.
  std::optional<mask::Band> runs = {};
  // Of a RunTimeLayout that has no rows: false leaves out the two-level lists and the bitmaps by
  // inner tiles where that is faster, and gives each part tile a lane-ordered bitmap of its own
  // then; counts has the status alone.
  bool tile_lists = true;
};

}  // namespace stof::mask_layout
