#pragma once

#include <cstddef>
#include <cstdint>

#include "mask_layout/layout.hpp"
#include "mask_layout/stages.hpp"

namespace stof::mask_layout {

// Hands out pieces of one block of memory; of none at all, to see how much it takes.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}

  template <typename T>
  T* take(std::int64_t count) {
    return reinterpret_cast<T*>(take_bytes(sizeof(T) * static_cast<std::size_t>(count)));
  }
  std::byte* take_bytes(std::size_t size_bytes);
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* memory_;
  std::size_t size_bytes_ = 0;
};

// How many entries lists have room for.
struct Capacity {
  std::int64_t full_tiles = 0;
  std::int64_t part_tiles = 0;
  std::int64_t keys = 0;
};

// All that the stages of a build read and write.
struct Buffers {
  Layout layout;
  TileClasses classes;  // while the build lasts
  BitmapPool pool;
  SortSpace space;
  AtOnceSpace at_once;
};

// Gives the buffers their memory: what settle_tiles writes, then what list_tiles and what derives
// from it write, then the keys of rows; or all that build_at_once writes, or list_runs. Throws
// GraphError where 32 bits do not count what is asked for, a tile_q is none that attention_tiles
// takes, or one is asked for twice.
void carve_codes(Carver& carver, Buffers& buffers);
void carve_lists(Carver& carver, Buffers& buffers, const LayoutRequest& request,
                 const Capacity& capacity);
void carve_keys(Carver& carver, Buffers& buffers, const Capacity& capacity);
void carve_at_once(Carver& carver, Buffers& buffers, const LayoutRequest& request,
                   const Capacity& capacity);
void carve_runs(Carver& carver, Buffers& buffers);

}  // namespace stof::mask_layout
