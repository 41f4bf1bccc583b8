// Attention over windows with global tokens: keys that nearly all queries see beside a window, and
// queries that see nearly all keys. What lies in shared memory, and who has a part in a head.
#pragma once

#include "device/attention_window.cuh"

namespace stof {

// Which blocks go along the tiles of one (batch, head) pair, one behind the other; where no pairs
// lie side by side.
struct BlocksOfPair {
  int count, number;  // this one's

  __device__ __forceinline__ BlocksOfPair(const Walk& walk, int pair) {
    const int first_tile = pair * walk.plane_tiles;
    const int first = walk.block_of_tile(first_tile);
    count = walk.block_of_tile(first_tile + walk.plane_tiles - 1) - first + 1;
    number = static_cast<int>(blockIdx.x) - first;
  }
};

// Of a query tile, as mask::GlobalLocal::local_status has it: what it sees of its boxes, then of 64
// global keys each; and which rows are its own.
struct LocalTile {
  static constexpr int kNumbers = 8, kFirstPiece = 3, kWritten = 7;
  alignas(16) int numbers[kNumbers];
};

// What a head has in common, in front of the rings: its global keys and their values, which the
// warp groups of query tiles read, and its global queries, which another one has. Aligned to 1024
// bytes.
template <typename Shape, int Keys, int QueryTiles, bool Apart>
struct GlobalShared {
  using Ring = WindowShared<Shape, Apart>;
  using Head = RingPlace<1>;
  static constexpr int kPanelBytes = Keys * Shape::kRowBytes;
  static constexpr int kGroupBytes = 16 * Shape::kRowBytes;
  static constexpr int kQueryBytes = Shape::kPanels * Shape::kTileBytes;  // of a tile

  unsigned char keys[Shape::kKeyPanels * kPanelBytes], values[Shape::kValuePanels * kPanelBytes];
  unsigned char queries[QueryTiles * kQueryBytes];
  Ring ring;
  LocalTile tiles[Shape::kQuerySlots];  // beside the queries
  unsigned long long keys_here, keys_free, queries_here, queries_free;

  // By one thread.
  __device__ __forceinline__ void init_barriers(int local_groups) {
    init_barrier(shared_address(&keys_here), 1);
    init_barrier_of_warps(shared_address(&keys_free), 4 * local_groups);
    init_barrier(shared_address(&queries_here), 1);
    init_barrier_of_warps(shared_address(&queries_free), 4);
    ring.init_barriers(8);
  }

  // By one thread, as soon as all are done with those of the head before.
  __device__ __forceinline__ void load_keys(const TensorMap& k16, const TensorMap& v16,
                                            const int* __restrict__ groups, const Head& at,
                                            TileOrigin origin) {
    wait_for_phase(shared_address(&keys_free), at.parity ^ 1);
    const unsigned barrier = shared_address(&keys_here);
    arrive_expecting(barrier, sizeof(keys) + sizeof(values));
#pragma unroll 1
    for (int i = 0; i < Keys / 16; ++i) {
      origin.row = 16 * __ldg(groups + i);
      load_panels<Shape::kKeyPanels, kPanelBytes>(shared_address(keys) + i * kGroupBytes, k16,
                                                  barrier, origin);
      load_panels<Shape::kValuePanels, kPanelBytes>(shared_address(values) + i * kGroupBytes, v16,
                                                    barrier, origin);
    }
  }
  __device__ __forceinline__ void load_queries(const TensorMap& q16, const int* __restrict__ groups,
                                               const Head& at, TileOrigin origin) {
    wait_for_phase(shared_address(&queries_free), at.parity ^ 1);
    const unsigned barrier = shared_address(&queries_here);
    arrive_expecting(barrier, QueryTiles * Shape::kKeyPanels * Shape::kTileBytes);
#pragma unroll
    for (int i = 0; i < 4 * QueryTiles; ++i) {
      origin.row = 16 * __ldg(groups + i);
      load_panels<Shape::kKeyPanels, Shape::kTileBytes>(
          shared_address(queries) + i / 4 * kQueryBytes + i % 4 * kGroupBytes, q16, barrier,
          origin);
    }
  }
  // Of a query tile, by the thread that fills the rings.
  __device__ __forceinline__ void load_tile_queries(const TensorMap& q,
                                                    const int* __restrict__ local_status,
                                                    const typename Ring::Queries& at,
                                                    TileOrigin origin) {
    wait_for_phase(shared_address(&ring.queries_free[at.slot]), at.parity ^ 1);
    const unsigned barrier = shared_address(&ring.queries_here[at.slot]);
    arrive_expecting(barrier, Shape::kKeyPanels * Shape::kTileBytes + sizeof(LocalTile));
    load_panels<Shape::kKeyPanels, Shape::kTileBytes>(shared_address(ring.queries[at.slot]), q,
                                                      barrier, origin);
    load_bytes(shared_address(tiles[at.slot].numbers),
               local_status + origin.row / 64 * LocalTile::kNumbers, sizeof(LocalTile), barrier);
  }

  __device__ __forceinline__ void wait_for_keys(const Head& at) {
    wait_for_phase(shared_address(&keys_here), at.parity);
  }
  __device__ __forceinline__ void wait_for_queries(const Head& at) {
    wait_for_phase(shared_address(&queries_here), at.parity);
  }
  // By each warp of the groups that are done with them.
  __device__ __forceinline__ void free_keys() {
    arrive_of_warp(shared_address(&keys_free));
  }
  __device__ __forceinline__ void free_queries() {
    arrive_of_warp(shared_address(&queries_free));
  }
};

}  // namespace stof
