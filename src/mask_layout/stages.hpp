#pragma once

#include <cstdint>

#include "cuda/launches.hpp"
#include "mask/rows.hpp"
#include "mask_layout/layout.hpp"
#include "mask_layout/views.hpp"

// The steps of a build, in their order. Each adds kernels to those that are launched for a build
// and does nothing else. What one writes the next ones read.
namespace stof::mask_layout {

// The classes of tiles that intervals do not settle: those that see what MaskView::drawn_part
// keeps, and others.
inline constexpr std::int32_t kOpen = -3;
inline constexpr std::int32_t kDrawn = -4;

// What is known of every tile.
struct TileClasses {
  // mask::kAllSeen, kNoneSeen, or of a part tile the table entry of its bitmap, or, where there is
  // no table, the number of its bitmap.
  std::int32_t* codes = nullptr;
  // Of part tiles: bit i says that rows 16 i to 16 i + 15 of the tile see a key, bit i + 4 that
  // they do not see one that exists.
  std::uint8_t* strips = nullptr;
};

// Of a hash table of bitmaps; all ones where there is none.
struct BitmapEntry {
  std::int32_t owner = -1;           // a slot with the bitmap
  std::uint32_t first = 0xFFFFFFFF;  // the lowest tile with the bitmap
};

// Bitmaps of part tiles as they come, and a hash table that finds those that are equal.
struct BitmapPool {
  std::int64_t capacity = 0;        // slots
  std::int64_t table_size = 0;      // a power of two, at least four times the capacity
  std::uint64_t* words = nullptr;   // [capacity][64]
  BitmapEntry* table = nullptr;     // [table_size]
  std::int32_t* number = nullptr;   // [table_size]: of the bitmap, by first use
  std::int32_t* numbers = nullptr;  // [row_count + 1]: bitmaps that are first used before the row
  std::int32_t* leader = nullptr;   // [capacity]: a slot of each bitmap
};

// What a sort of so many rows works in.
struct SortSpace {
  std::int32_t* lengths = nullptr;         // [rows of all attention tiles]
  std::int32_t* sorted_lengths = nullptr;  // [rows]
  std::int32_t* spare_lengths = nullptr;   // [rows]
  std::int32_t* spare_numbers = nullptr;   // [rows]
  std::int32_t* digits = nullptr;          // [digit_count(rows)]
};
std::int64_t digit_count(std::int64_t rows);

// The order of mask::longest_first of rows of these lengths, none above `longest`; leaves the
// lengths in descending order in sorted_lengths.
void order_longest_first(const std::int32_t* lengths, std::int64_t rows, std::int64_t longest,
                         const SortSpace& space, std::int32_t* order, cuda::Launches& launches);

// The first step. Intervals give every tile its class or leave it open; lengths and offsets are
// checked; rows have their numbers, if any tile draws; counts and the table of the pool, where it
// has its memory, are as they are in the beginning.
void settle_tiles(const MaskView& mask, const Layout& layout, std::int32_t* classes,
                  const BitmapPool& pool, cuda::Launches& launches);

// What settle_tiles found, for a host that gives out memory: counts.open_tiles, counts.full_tiles.
void count_settled_tiles(const Layout& layout, const std::int32_t* classes,
                         cuda::Launches& launches);

// Pairs of the open tiles: each gets its class, part tiles a slot of the pool.
void evaluate_tiles(const MaskView& mask, const Layout& layout, const TileClasses& classes,
                    const BitmapPool& pool, cuda::Launches& launches);

// What a layout without two-level lists is built in.
struct AtOnceSpace {
  // Of each tile row, [stretches of at least 8 tiles]: component s has bit i where rows 16 s to
  // 16 s + 15 of tile i see a key.
  uint4* seeing = nullptr;
};
inline constexpr std::int64_t kLeastStretch = 8;

// What the blocks of build_at_once count in, zero between builds.
struct Arrivals {
  unsigned blocks = 0;
  std::int32_t part_tiles = 0;
  std::int32_t status = 0;
};

// Whether the grid is small enough for build_at_once, and no more is asked for.
bool is_built_at_once(const Grid& grid, const LayoutRequest& request);

// Layouts without two-level lists: classes, lane_bitmaps, of which part tiles have one each, and
// attention_tiles. Inputs of the mask are staged. Tells the host as list_tiles does.
void build_at_once(const MaskView& mask, const Layout& layout, const TileClasses& classes,
                   const AtOnceSpace& space, std::int64_t bitmaps, Arrivals* arrivals,
                   LayoutReport* report, cuda::Launches& launches);

// The lists, part_bitmap, bitmaps, tile_codes and attention_tiles. Tells the host, where a report
// is given, why the layout is left empty, if it is.
void list_tiles(const Layout& layout, const TileClasses& classes, const BitmapPool& pool,
                const SortSpace& space, LayoutReport* report, cuda::Launches& launches);

// All of rows but the keys themselves, and the counts of rows. Where there are more keys than
// `capacity`, key_row_ptr, if wanted, says that no row has any.
void measure_rows(const Layout& layout, std::int64_t capacity, const SortSpace& space,
                  cuda::Launches& launches);

// rows.first and rows.end of the queries of one plane that see those keys of their document, by
// offsets that the first input of the mask holds, which the band shows them. Tells the host, where
// a report is given, that an offset is out of range; no query sees a key then.
void list_runs(const MaskView& mask, const Layout& layout, const mask::Band& band,
               LayoutReport* report, cuda::Launches& launches);

// rows.key_col.
void list_keys(const Layout& layout, cuda::Launches& launches);

}  // namespace stof::mask_layout
