// What a CTA of an attention grid computes, and in which order the grid goes through a masked
// problem.
#pragma once

#include "device/async_copy.cuh"

namespace stof {

struct AttentionGrid {
  int mask_batch, mask_heads;
  int batch, heads;
  int section, last_section;  // how many replicas each section has, and the last one

  // Planes of the mask are those of a batch element, of a head, of both, or there is one.
  __device__ __forceinline__ bool has_batch_planes() const { return mask_batch > 1; }
  __device__ __forceinline__ bool has_head_planes() const { return mask_heads > 1; }
  // (batch, head) pairs that share a plane.
  __device__ __forceinline__ int replicas() const {
    return (has_batch_planes() ? 1 : batch) * (has_head_planes() ? 1 : heads);
  }
};

struct Division {
  int quotient, rest;
};

// Of a number that is not negative by one that is not either: that takes fewer instructions, and a
// block waits for them before it can load anything.
__device__ __forceinline__ Division divide(int number, int by) {
  const int quotient = static_cast<unsigned>(number) / static_cast<unsigned>(by);
  return {quotient, number - quotient * by};
}

// Which entries of the mask's order, `per_block` of them, for which of the replicas.
struct AttentionSlot {
  int position, replica;
};

// The grid goes through the replicas in sections, each from the longest entries to the shortest: so
// long ones start early, and all entries of a head find its keys in L2. All sections but the last
// have `section` replicas; that one may have more, or fewer. Here and below divisions are left out
// where they can be.
__device__ __forceinline__ AttentionSlot attention_slot(const AttentionGrid& grid, int entries,
                                                        int per_block, int block) {
  const int blocks = (entries + per_block - 1) / per_block;
  const int replicas = grid.replicas();
  int first = replicas - grid.last_section, in_section = grid.last_section;
  if (block < blocks * first) {
    const Division at = divide(block, blocks * grid.section);
    first = at.quotient * grid.section;
    in_section = grid.section;
    block = at.rest;
  } else {
    block -= blocks * first;
  }
  const Division place = divide(block, in_section);
  return {place.quotient * per_block, first + place.rest};
}

// Of an entry that is worked on in several parts, one of them; behind them come sums of all parts,
// each for a quarter of the rows.
struct EntryPart {
  int number, parts;

  __device__ __forceinline__ bool is_sum() const { return number >= parts; }
  __device__ __forceinline__ int quarter() const { return number - parts; }
};

// A query tile, or row, of one head.
struct AttentionTile {
  int batch, head;
  int plane;  // of the mask: mask batch * mask heads + mask head
  int index;  // within the plane
};

// `tile` counts over all planes, of `tiles` each.
__device__ __forceinline__ AttentionTile attention_tile(const AttentionGrid& grid, int tile,
                                                        int tiles, int replica) {
  const bool has_one_plane = !grid.has_batch_planes() && !grid.has_head_planes();
  const Division of_tile = has_one_plane ? Division{0, tile} : divide(tile, tiles);
  const int number = has_one_plane ? replica : of_tile.quotient;
  const int heads = has_one_plane ? grid.heads : grid.mask_heads;
  const Division pair =
      has_one_plane && grid.batch == 1 ? Division{0, number} : divide(number, heads);
  return {has_one_plane || grid.has_batch_planes() ? pair.quotient : replica,
          has_one_plane || grid.has_head_planes() ? pair.rest : replica, of_tile.quotient,
          of_tile.rest};
}

// Whose keys a query head reads.
__device__ __forceinline__ int kv_head_of(int head, int heads, int kv_heads) {
  return heads == kv_heads ? head : divide(head, divide(heads, kv_heads).quotient).quotient;
}

// Where they begin, so that short ones are near when a block knows its place in them.
__device__ __forceinline__ void prefetch_lists(const int* row_ptr, const int* tile_col,
                                               const int* tile_bitmap) {
  prefetch_l2(row_ptr);
  prefetch_l2(tile_col);
  prefetch_l2(tile_bitmap);
}

// How many of the ascending tile columns lie, at least in part, before `key_end`.
__device__ __forceinline__ int tiles_before(const int* columns, int count, int key_end) {
  int first = 0;
  while (first < count) {
    const int middle = (first + count) / 2;
    if (__ldg(columns + middle) * 64 < key_end) {
      first = middle + 1;
    } else {
      count = middle;
    }
  }
  return first;
}

}  // namespace stof
