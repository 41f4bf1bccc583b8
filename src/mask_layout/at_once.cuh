// What the kernels of a layout without two-level lists work with.
#pragma once

#include "mask_layout/list_work.cuh"

namespace stof::mask_layout {

inline constexpr int kMostTiles = 32;                       // of a stretch, a bit each
inline constexpr int kStrips = 4;                           // of 16 rows, of a tile
inline constexpr std::uint8_t kAllStrips = 15;              // see a key, see TileClasses
inline constexpr std::int64_t kMostQueryTilesAtOnce = 256;  // of one size

struct AtOnceWork {
  ListWork lists;
  std::int64_t bitmaps = 0;  // that there is room for
  Arrivals* arrivals = nullptr;
  uint4* seeing = nullptr;  // see AtOnceSpace
  int stretch_tiles = 0;    // the most
  int stretches = 0;        // of a tile row
};

// Adds what lists query tiles once all tiles have classes.
void list_at_once(const AtOnceWork& work, cuda::Launches& launches);

}  // namespace stof::mask_layout
