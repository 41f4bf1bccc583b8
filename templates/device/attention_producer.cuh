// The warp of an attention block that brings its tiles to shared memory.
#pragma once

#include "device/attention_mask.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// Query tiles are claimed by number: a block begins with its own, and takes the next one of all
// when it is done. Claims and blocks that have ended are counted in the workspace, and the last
// block leaves both counts at zero. By lane 0; the claim is in that lane alone.
__device__ __forceinline__ int claim_tile(int* counts, int lane) {
  return lane == 0 ? static_cast<int>(gridDim.x) + atomicAdd(counts, 1) : 0;
}
__device__ __forceinline__ void end_claims(int* counts) {
  if (atomicAdd(counts + 1, 1) == static_cast<int>(gridDim.x) - 1) {
    counts[0] = 0;
    counts[1] = 0;
  }
}

// The active key tiles of a query tile.
struct TileList {
  const int* tile_col;
  const int* tile_bitmap;
  int tiles;
};

// What a lane knows of a step: the first key of tile number `lane`, and the status of entry number
// `lane` of what the groups see of its tiles.
struct ListedStep {
  int key, status;
};

// All lanes are in step; each asks for a tile of a panel.
template <typename Shape, bool HasBitmaps, bool Overlaps>
struct Producer {
  AttentionShared<Shape>& shared;
  const TensorMap& k;
  const TensorMap& v;
  const unsigned* bitmaps;
  int kv_len, lane;
  RingPlace<Shape::kSlots> place = {};
  RingPlace<Shape::kQuerySlots> query_place = {};

  // Asks for the queries of a tile, which announce() then lets the consumers take.
  __device__ __forceinline__ void load_queries(const TensorMap& q, int first_query, int head,
                                               int batch) const {
    wait_for_query_slot();
    if (lane < Shape::kGroups * Shape::kKeyPanels) {
      const int panel = lane / Shape::kGroups, group = lane % Shape::kGroups;
      const int query = first_query + 64 * group;
      load_tile(shared_address(shared.queries[query_place.slot]) + panel * Shape::kQueryPanelBytes +
                    group * Shape::kTileBytes,
                q, queries_here(), {panel * 64, query, head, batch});
    }
  }
  __device__ __forceinline__ void announce(const QueryTile& tile) {
    if (lane == 0) {
      shared.tiles[query_place.slot] = tile;
      arrive_expecting(queries_here(), Shape::kQueryPanelBytes * Shape::kKeyPanels);
    }
    query_place.advance();
  }
  // There is no further one.
  __device__ __forceinline__ void announce_end() const {
    wait_for_query_slot();
    if (lane == 0) {
      shared.tiles[query_place.slot].steps = kNoTile;
      arrive(queries_here());
    }
  }

  // Of `parts` parts, which are as long as each other but for a step.
  __device__ __forceinline__ TileList part_of(const TileList& list, int part, int parts) const {
    if (parts == 1)
      return list;
    const int steps = (list.tiles + Shape::kTiles - 1) / Shape::kTiles;
    const int first = steps * part / parts * Shape::kTiles;
    const int end = steps * (part + 1) / parts * Shape::kTiles;
    return {list.tile_col + first, list.tile_bitmap + first * Shape::kGroups,
            min(end, list.tiles) - first};
  }

  // Brings the tiles of the list in the order in which the consumers take them.
  __device__ __forceinline__ void load(const TileList& list, int steps, int head, int batch) {
    ListedStep step = listed(list, 0);
    int last_key = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      const ListedStep next = listed(list, i + 1);
      load_keys(step, head, batch);
      if (!Overlaps)
        load_values(step.key, head, batch);
      if (Overlaps && i > 0)
        load_values(last_key, head, batch);
      last_key = step.key;
      step = next;
    }
    if (Overlaps && steps > 0)
      load_values(last_key, head, batch);
  }

 private:
  // Where the list is over, keys that do not exist and are read as zero.
  __device__ __forceinline__ ListedStep listed(const TileList& list, int step) const {
    const int tile = step * Shape::kTiles + lane, entry = step * Shape::kEntries + lane;
    ListedStep listed = {kv_len, kTileIsEmpty};
    if (lane < Shape::kTiles && tile < list.tiles)
      listed.key = __ldg(list.tile_col + tile) * 64;
    if (lane < Shape::kEntries && entry < list.tiles * Shape::kGroups)
      listed.status = __ldg(list.tile_bitmap + entry);
    return listed;
  }

  __device__ __forceinline__ unsigned queries_here() const {
    return shared_address(&shared.queries_here[query_place.slot]);
  }
  __device__ __forceinline__ void wait_for_query_slot() const {
    wait_for_phase(shared_address(&shared.queries_free[query_place.slot]), query_place.parity ^ 1);
  }
  __device__ __forceinline__ unsigned here() const {
    return shared_address(&shared.here[place.slot]);
  }
  __device__ __forceinline__ void wait_for_slot() const {
    wait_for_phase(shared_address(&shared.free[place.slot]), place.parity ^ 1);
  }

  __device__ __forceinline__ void load_keys(const ListedStep& step, int head, int batch) {
    wait_for_slot();
    StepNotes<Shape>& notes = shared.notes[place.slot];
    if (lane < Shape::kTiles)
      notes.key[lane] = step.key;
    if (lane < Shape::kEntries)
      notes.status[lane] = step.status;
    const bool has_bitmap = HasBitmaps && step.status >= 0;
    const int bitmap_bytes = __popc(__ballot_sync(0xffffffffu, has_bitmap)) * Shape::kBitmapBytes;
    load_tiles<Shape::kKeyPanels>(k, step.key, head, batch, bitmap_bytes);
    if (has_bitmap) {
      load_bytes(shared_address(shared.bitmaps[place.slot][lane]),
                 bitmaps + step.status * (Shape::kBitmapBytes / 4ll), Shape::kBitmapBytes, here());
    }
    place.advance();
  }

  __device__ __forceinline__ void load_values(int key, int head, int batch) {
    wait_for_slot();
    load_tiles<Shape::kValuePanels>(v, key, head, batch, 0);
    place.advance();
  }

  template <int Panels>
  __device__ __forceinline__ void load_tiles(const TensorMap& map, int key, int head, int batch,
                                             int further_bytes) const {
    // Each lane that may have written notes arrives itself. That lane 0 could do it for all behind
    // a __syncwarp() is more than compute-sanitizer follows.
    if (lane == 0)
      arrive_expecting(here(), Shape::kPanelBytes * Panels + further_bytes);
    else if (lane < Shape::kEntries)
      arrive(here());
    __syncwarp();
    const int tile = lane / Panels % Shape::kTiles, panel = lane % Panels;
    key = __shfl_sync(0xffffffffu, key, tile);
    if (lane < Shape::kTiles * Panels) {
      const unsigned slot = shared_address(shared.slots[place.slot]);
      load_tile(slot + panel * Shape::kPanelBytes + tile * Shape::kTileBytes, map, here(),
                {panel * 64, key, head, batch});
    }
  }
};

}  // namespace stof
