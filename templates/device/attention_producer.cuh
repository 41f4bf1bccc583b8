// The warp of an attention block that brings its tiles to shared memory.
#pragma once

#include "device/attention_mask.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// Query tiles are claimed by number: a block begins with its own, and takes the next one of all
// when it is done. Claims and blocks that have ended are counted in the workspace, and the last
// block leaves both counts at zero. By lane 0; how many claims were there before is in that lane
// alone, and may come late. The compiler makes of an addition one for all lanes that are there,
// which wait for their shares at once, but not of a count up to a limit.
__device__ __forceinline__ int claim_tile(int* counts, int lane) {
  int before = 0;
  asm volatile(
      "{ .reg .pred p;\nsetp.eq.s32 p, %2, 0;\n@p atom.global.inc.u32 %0, [%1], 0x7fffffff; }"
      : "+r"(before)
      : "l"(__cvta_generic_to_global(counts)), "r"(lane)
      : "memory");
  return before;
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
  bool is_cut;    // keys of the last one do not exist
  int first = 0;  // of all tiles, where the arrays are not read
};

// Query tiles of rows that lie side by side, and key tiles of 64 such keys. A source has `kBoxes`
// boxes in a tile, each known by a number, and `kNumbers` numbers of a list for it.
// Where it has all key tiles, lists are not read.
template <typename Shape, bool HasAll>
struct TileSource {
  static constexpr int kBoxes = 1, kNumbers = 1;
  static constexpr bool kHasAll = HasAll;

  const TensorMap& q;
  const TensorMap& k;
  const TensorMap& v;

  // The row of Q that number `row` of the rows of all tiles is.
  __device__ __forceinline__ int row(int row) const { return row; }
  __device__ __forceinline__ void load_queries(unsigned queries, unsigned barrier, int first_row,
                                               TileOrigin origin, int lane) const {
    if (lane < Shape::kGroups * Shape::kKeyPanels) {
      const int panel = lane / Shape::kGroups, group = lane % Shape::kGroups;
      origin.column = panel * 64;
      origin.row = first_row + 64 * group;
      load_tile(queries + panel * Shape::kQueryPanelBytes + group * Shape::kTileBytes, q, barrier,
                origin);
    }
  }

  // A box is known by its first key; that behind the list by one that does not exist.
  __device__ __forceinline__ static int listed(const int* tile_col, int box) {
    return __ldg(tile_col + box) * 64;
  }
  __device__ __forceinline__ static int behind_list(int, int kv_len) { return kv_len; }
  // Of keys, or else values.
  template <bool IsKeys>
  __device__ __forceinline__ void load_box(unsigned shared, unsigned barrier, int box,
                                           TileOrigin origin) const {
    origin.row = box;
    load_tile(shared, IsKeys ? k : v, barrier, origin);
  }
};

// What a lane knows of a step: box number `lane` of its tiles, and the status of entry number
// `lane` of what the groups see of them.
struct ListedStep {
  int box, status;
};

// All lanes are in step; each asks for a box of a panel.
template <typename Shape, typename Source, bool HasBitmaps, bool Overlaps>
struct Producer {
  static constexpr int kBoxes = Shape::kTiles * Source::kBoxes;  // of a step, in a panel

  AttentionShared<Shape>& shared;
  const Source& source;
  const unsigned* bitmaps;
  int kv_len, lane;
  RingPlace<Shape::kSlots> place = {};
  RingPlace<Shape::kQuerySlots> query_place = {};

  // Asks for the queries of a tile, which announce() then lets the consumers take.
  __device__ __forceinline__ void load_queries(int first_row, int head, int batch) const {
    wait_for_query_slot();
    source.load_queries(shared_address(shared.queries[query_place.slot]), queries_here(), first_row,
                        {0, 0, head, batch}, lane);
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

  // Parts are as long as each other but for a step, the first ones if any longer; sums have no
  // keys.
  __device__ __forceinline__ TileList part_of(const TileList& list, const EntryPart& part) const {
    if (part.parts == 1)
      return list;
    const int tiles = part.is_sum() ? 0 : list.tiles;
    const Division share = divide((tiles + Shape::kTiles - 1) / Shape::kTiles, part.parts);
    const int first = (part.number * share.quotient + min(part.number, share.rest)) * Shape::kTiles;
    const int count = (share.quotient + (part.number < share.rest ? 1 : 0)) * Shape::kTiles;
    return {list.tile_col + first * Source::kNumbers, list.tile_bitmap + first * Shape::kGroups,
            max(min(count, tiles - first), 0), list.is_cut, first};
  }

  // Brings the tiles of the list in the order in which the consumers take them.
  __device__ __forceinline__ void load(const TileList& list, int steps, int head, int batch) {
    ListedStep step = listed(list, 0);
    int last_box = 0;
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      const ListedStep next = listed(list, i + 1);
      load_keys(step, head, batch);
      if (!Overlaps)
        load_values(step.box, head, batch);
      if (Overlaps && i > 0)
        load_values(last_box, head, batch);
      last_box = step.box;
      step = next;
    }
    if (Overlaps && steps > 0)
      load_values(last_box, head, batch);
  }

 private:
  // Where the list is over, keys that do not exist and are read as zero.
  __device__ __forceinline__ ListedStep listed(const TileList& list, int step) const {
    const int box = step * kBoxes + lane, entry = step * Shape::kEntries + lane;
    ListedStep listed = {Source::behind_list(lane, kv_len), kTileIsEmpty};
    if (lane < kBoxes && box < list.tiles * Source::kBoxes)
      listed.box = Source::kHasAll ? (list.first + box) * 64 : Source::listed(list.tile_col, box);
    if (lane < Shape::kEntries && entry < list.tiles * Shape::kGroups)
      listed.status = Source::kHasAll ? kTileIsFull : __ldg(list.tile_bitmap + entry);
    if (list.is_cut && entry >= (list.tiles - 1) * Shape::kGroups && listed.status == kTileIsFull)
      listed.status = kTileIsCut;
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
    if (Source::kBoxes == 1 && lane < Shape::kTiles)
      notes.key[lane] = step.box;
    if (lane < Shape::kEntries)
      notes.status[lane] = step.status;
    const bool has_bitmap = HasBitmaps && step.status >= 0;
    const int bitmap_bytes = __popc(__ballot_sync(0xffffffffu, has_bitmap)) * Shape::kBitmapBytes;
    load_tiles<Shape::kKeyPanels, true>(step.box, head, batch, bitmap_bytes);
    if (has_bitmap) {
      load_bytes(shared_address(shared.bitmaps[place.slot][lane]),
                 bitmaps + step.status * (Shape::kBitmapBytes / 4ll), Shape::kBitmapBytes, here());
    }
    place.advance();
  }

  __device__ __forceinline__ void load_values(int box, int head, int batch) {
    wait_for_slot();
    load_tiles<Shape::kValuePanels, false>(box, head, batch, 0);
    place.advance();
  }

  template <int Panels, bool IsKeys>
  __device__ __forceinline__ void load_tiles(int box, int head, int batch,
                                             int further_bytes) const {
    // Each lane that may have written notes arrives itself. That lane 0 could do it for all behind
    // a __syncwarp() is more than compute-sanitizer follows.
    if (lane == 0)
      arrive_expecting(here(), Shape::kPanelBytes * Panels + further_bytes);
    else if (lane < Shape::kEntries)
      arrive(here());
    __syncwarp();
    const int place_of_box = lane % kBoxes, panel = lane / kBoxes;
    box = __shfl_sync(0xffffffffu, box, place_of_box);
    if (panel < Panels) {
      const unsigned slot = shared_address(shared.slots[place.slot]) + panel * Shape::kPanelBytes +
                            place_of_box * (Shape::kTileBytes / Source::kBoxes);
      source.template load_box<IsKeys>(slot, here(), box, {panel * 64, 0, head, batch});
    }
  }
};

}  // namespace stof
