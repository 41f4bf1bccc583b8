// Attention over windows by blocks that walk along their queries: which ones, and what lies in
// shared memory.
#pragma once

#include "device/attention_band.cuh"
#include "device/attention_softmax.cuh"

namespace stof {

// How blocks go along queries. The (batch, head) pairs go along together, so many side by side,
// each with blocks of its own, as those whose rows lie side by side in memory should; a block has
// as many tiles, of one pair behind the other, as any other, but for one. Contracts allow 2^24
// tiles, which times 255 blocks are numbers of 32 bits; a block has an SM, and sm_90 no more.
struct Walk {
  int plane_tiles, planes;  // query tiles of a pair, and pairs
  int heads, side_by_side;

  // The number of the block's first tile among those of its side.
  __device__ __forceinline__ int first_tile() const { return share(blockIdx.x / side_by_side); }
  __device__ __forceinline__ int tiles() const {
    const unsigned block = blockIdx.x / side_by_side;
    return block < blocks() ? share(block + 1) - share(block) : 0;
  }
  __device__ __forceinline__ int side() const { return blockIdx.x % side_by_side; }
  // Among those of the side, which has a tile of the same number.
  __device__ __forceinline__ int block_of_tile(int tile) const {
    const unsigned all = planes / side_by_side * plane_tiles;
    return static_cast<int>(((tile + 1u) * blocks() + all - 1) / all) - 1;
  }

 private:
  __device__ __forceinline__ unsigned blocks() const { return gridDim.x / side_by_side; }
  __device__ __forceinline__ int share(unsigned blocks_before) const {
    const unsigned tiles = planes / side_by_side * plane_tiles;
    return static_cast<int>(blocks_before * tiles / blocks());
  }
};

// `count` places further on.
template <int Slots>
__device__ __forceinline__ RingPlace<Slots> ahead(const RingPlace<Slots>& at, unsigned count) {
  const unsigned slot = at.slot + count;
  return slot < Slots ? RingPlace<Slots>{slot, at.parity}
                      : RingPlace<Slots>{slot - Slots, at.parity ^ 1};
}

// A query tile, and the first of the `Boxes` boxes that it sees. Those of each further pair begin
// anew.
template <int Slots, int Boxes>
struct WindowPlace {
  int tile, head, batch;
  RingPlace<Slots> box;

  __device__ __forceinline__ explicit WindowPlace(const Walk& walk) {
    const int first = walk.first_tile(), per_batch = walk.heads / walk.side_by_side;
    const int pair = first / walk.plane_tiles;
    tile = first - pair * walk.plane_tiles;
    batch = pair / per_batch;
    head = (pair - batch * per_batch) * walk.side_by_side + walk.side();
  }

  __device__ __forceinline__ void advance(int tiles, const Walk& walk) {
#pragma unroll 1
    for (; tiles > 0; --tiles) {
      box = ahead(box, 1);
      if (++tile < walk.plane_tiles)
        continue;
      box = ahead(box, Boxes - 1);
      tile = 0;
      head += walk.side_by_side;
      if (head >= walk.heads) {
        head -= walk.heads;
        ++batch;
      }
    }
  }
};

// The part that a warp has in a query tile whose row r sees the columns from number r on, `width`
// of them: its 16 rows see nothing but kPieces times 16 columns, from number 16 * Warp on, where
// Warp is its number in the group, a quarter less than there are of a window of 129 keys and half
// of one of 23. Rows end at the same places of these in every tile, but where keys do not exist. To
// hide what lies behind the ends each warp has code of its own, since registers have fixed numbers;
// a quarter of an SM runs one of them.
template <int Keys>
struct WarpWindow {
  static constexpr int kPieces = (Keys - 48) / 16;
  // Pieces in which a row may end: the first one and the last three.
  static constexpr int kWhole = kPieces > 4 ? kPieces - 4 : 0;
  unsigned ends;  // of these, 8 bits each: the scores of a lane that are seen

  __device__ __forceinline__ WarpWindow(int width, int lane) : ends(0) {
#pragma unroll 4
    for (int i = 0; i < 32; ++i) {
      const int piece = i < 8 ? 0 : i / 8 + kWhole, score = i % 8;
      const int column = 16 * piece + score / 4 * 8 + lane % 4 * 2 + score % 2;
      const int row = lane / 4 + score % 4 / 2 * 8;
      ends |= static_cast<unsigned>(column >= row && column < row + width) << i;
    }
  }

  // Hides scores, and finds the highest of the others.
  template <int Warp>
  __device__ __forceinline__ void take_scores(float (&s)[1][Keys / 2],
                                              float (&highest)[1][2]) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (i == 0 || i > kWhole)
        mask_scores(piece_of(s, Warp + i), ends >> (i == 0 ? 0 : 8 * (i - kWhole)));
    }
#pragma unroll
    for (int i = 8 * Warp; i < 8 * (Warp + kPieces); ++i)
      highest[0][i % 4 / 2] = fmaxf(highest[0][i % 4 / 2], s[0][i]);
  }
};

// Rings of queries, and of boxes of 64 keys and their values, and their barriers: `here` when they
// are there, `free` when a place may be filled again, which with Apart is known of keys before it
// is of their values. The front is aligned to 1024 bytes. Outputs take the place of the queries.
template <typename Shape, bool Apart = false>
struct WindowShared {
  using Box = RingPlace<Shape::kSlots>;
  using Queries = RingPlace<Shape::kQuerySlots>;

  unsigned char queries[Shape::kQuerySlots][Shape::kPanels * Shape::kQueryPanelBytes];
  unsigned char keys[Shape::kSlots][Shape::kKeyPanels * Shape::kPanelBytes];
  unsigned char values[Shape::kSlots][Shape::kValuePanels * Shape::kPanelBytes];
  uint4 ones[Shape::kAddsUp ? 128 : 1];  // 16 rows of a panel
  unsigned long long queries_here[Shape::kQuerySlots], queries_free[Shape::kQuerySlots];
  unsigned long long keys_here[Shape::kSlots], values_here[Shape::kSlots];
  unsigned long long free[Apart ? 2 : 1][Shape::kSlots];  // of values last

  // By one thread, as are the loads. So many warps are done with a box when it is free.
  __device__ __forceinline__ void init_barriers(int warps = 4) {
    for (int slot = 0; slot < Shape::kQuerySlots; ++slot) {
      init_barrier(shared_address(&queries_here[slot]), 1);
      init_barrier_of_warps(shared_address(&queries_free[slot]), 4);
    }
    for (int slot = 0; slot < Shape::kSlots; ++slot) {
      init_barrier(shared_address(&keys_here[slot]), 1);
      init_barrier(shared_address(&values_here[slot]), 1);
      init_barrier_of_warps(shared_address(&free[0][slot]), warps);
      if (Apart)
        init_barrier_of_warps(shared_address(&free[Apart][slot]), warps);
    }
    publish_barriers();
  }

  __device__ __forceinline__ void load_queries(const TensorMap& q, const Queries& at,
                                               TileOrigin origin) {
    wait_for_phase(shared_address(&queries_free[at.slot]), at.parity ^ 1);
    load_all_panels<Shape::kKeyPanels, Shape::kTileBytes>(queries[at.slot], q,
                                                          queries_here[at.slot], origin);
  }
  __device__ __forceinline__ void load_keys(const TensorMap& k, const Box& at, TileOrigin origin) {
    wait_for_phase(shared_address(&free[0][at.slot]), at.parity ^ 1);
    load_all_panels<Shape::kKeyPanels, Shape::kTileBytes>(keys[at.slot], k, keys_here[at.slot],
                                                          origin);
  }
  // Behind the keys of their box.
  __device__ __forceinline__ void load_values(const TensorMap& v, const Box& at,
                                              TileOrigin origin) {
    if (Apart)
      wait_for_phase(shared_address(&free[Apart][at.slot]), at.parity ^ 1);
    load_all_panels<Shape::kValuePanels, Shape::kTileBytes>(values[at.slot], v,
                                                            values_here[at.slot], origin);
  }

  __device__ __forceinline__ unsigned wait_for_queries(const Queries& at) {
    wait_for_phase(shared_address(&queries_here[at.slot]), at.parity);
    return shared_address(queries[at.slot]);
  }
  // Of a box, once they are there.
  __device__ __forceinline__ unsigned wait_for_keys(const Box& at) {
    wait_for_phase(shared_address(&keys_here[at.slot]), at.parity);
    return shared_address(keys[at.slot]);
  }
  __device__ __forceinline__ unsigned wait_for_values(const Box& at) {
    wait_for_phase(shared_address(&values_here[at.slot]), at.parity);
    return shared_address(values[at.slot]);
  }

  // By each warp of the group that is done with them; with Apart of what is not of keys alone.
  __device__ __forceinline__ void free_box(const Box& at) {
    arrive_of_warp(shared_address(&free[Apart][at.slot]));
  }
  __device__ __forceinline__ void free_keys(const Box& at) {
    if (Apart)
      arrive_of_warp(shared_address(&free[0][at.slot]));
  }
  // Once the outputs have left them.
  __device__ __forceinline__ void free_queries(const Queries& at) {
    wait_for_reads_of_stores<0>();
    arrive_of_warp(shared_address(&queries_free[at.slot]));
  }
};

}  // namespace stof
