// What a CTA of an attention grid computes, and in which order the grid goes through a masked
// problem.
#pragma once

namespace stof {

struct AttentionGrid {
  int mask_batch, mask_heads;
  int batch, heads;
  int section;  // replicas whose keys and values stay in L2 together
};

// Which entries of the mask's order, `per_block` of them, for which of the replicas: the (batch,
// head) pairs that share a plane of the mask.
struct AttentionSlot {
  int position, replica;
};

// The grid goes through the replicas in sections, each from the longest entries to the shortest: so
// long ones start early, and all entries of a head find its keys in L2.
__device__ __forceinline__ AttentionSlot attention_slot(const AttentionGrid& grid, int entries,
                                                        int per_block, int block) {
  const int blocks = (entries + per_block - 1) / per_block;
  const int replicas = grid.batch * grid.heads / (grid.mask_batch * grid.mask_heads);
  const int section = block / (blocks * grid.section);
  const int in_section = min(grid.section, replicas - section * grid.section);
  const int rest = block - section * blocks * grid.section;
  return {rest / in_section * per_block, section * grid.section + rest % in_section};
}

// A query tile, or row, of one head.
struct AttentionTile {
  int batch, head;
  int plane;  // of the mask: mask batch * mask heads + mask head
  int index;  // within the plane
};

// `tile` counts over all planes, of `tiles` each.
__device__ __forceinline__ AttentionTile attention_tile(const AttentionGrid& grid, int tile,
                                                        int tiles, int replica) {
  const bool has_head_planes = grid.mask_heads > 1, has_batch_planes = grid.mask_batch > 1;
  const int plane = tile / tiles;
  return {has_batch_planes  ? plane / grid.mask_heads
          : has_head_planes ? replica
                            : replica / grid.heads,
          has_head_planes    ? plane % grid.mask_heads
          : has_batch_planes ? replica
                             : replica % grid.heads,
          plane, tile % tiles};
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
