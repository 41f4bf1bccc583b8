#pragma once

#include <cstdint>

#include "cuda/launches.hpp"
#include "mask_layout/layout.hpp"
#include "mask_layout/views.hpp"

// The steps of a build, in their order. Each adds kernels to those that are launched for a build
// and does nothing else. What one writes the next ones read.
namespace stof::mask_layout {

// The code of a tile whose class is not known yet. That of a part tile is its slot in the pool,
// until bitmaps have numbers.
inline constexpr std::int32_t kOpen = -3;

// Tiles that are left to be evaluated pair by pair.
struct OpenTiles {
  std::int32_t* tiles = nullptr;  // [tile_count], in no order
};

// Bitmaps of part tiles as they come, and a hash table that finds those that are equal.
struct BitmapPool {
  std::int64_t capacity = 0;          // slots
  std::int64_t table_size = 0;        // a power of two, at least twice the capacity
  std::uint64_t* words = nullptr;     // [capacity][64]
  std::int32_t* entry = nullptr;      // [capacity]: the table entry of the slot
  std::int32_t* owner = nullptr;      // [table_size]: a slot with the bitmap, -1 for none
  std::uint32_t* first = nullptr;     // [table_size]: the lowest tile with the bitmap
  std::int32_t* number = nullptr;     // [table_size]: of the bitmap, by first use
  std::int32_t* numbers = nullptr;    // [row_count + 1]: bitmaps that are first used before the row
  std::int32_t* part_tile = nullptr;  // [capacity]: of each part tile
  std::int32_t* leader = nullptr;     // [capacity]: a slot of each bitmap
};

// What a sort of so many rows works in.
struct SortSpace {
  std::int32_t* lengths = nullptr;         // [rows]
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

// The hash table as it is in the beginning.
void clear(const BitmapPool& pool, cuda::Launches& launches);

// Intervals give every tile its code or leave it open. Counts open tiles, and full ones as far as
// they are known.
void settle_tiles(const MaskView& mask, const Layout& layout, const OpenTiles& open,
                  cuda::Launches& launches);

// Pairs of the open tiles: full and empty ones get their code, others a slot of the pool.
void evaluate_tiles(const MaskView& mask, const Layout& layout, const OpenTiles& open,
                    const BitmapPool& pool, cuda::Launches& launches);

// Tells the host why the layout is about to be left empty, if it is.
void report_status(const LayoutCounts* counts, LayoutReport* report, cuda::Launches& launches);

// The lists, part_bitmap, bitmaps and the final tile_codes.
void list_tiles(const Layout& layout, const BitmapPool& pool, cuda::Launches& launches);

void derive_attention_tiles(const Layout& layout, const AttentionTiles& tiles,
                            const SortSpace& space, cuda::Launches& launches);

// All of rows but the keys themselves, and the counts of rows. Where there are more keys than
// `capacity`, key_row_ptr, if wanted, says that no row has any.
void measure_rows(const Layout& layout, std::int64_t capacity, const SortSpace& space,
                  cuda::Launches& launches);

// rows.key_col.
void list_keys(const Layout& layout, cuda::Launches& launches);

}  // namespace stof::mask_layout
