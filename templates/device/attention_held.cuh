// Attention by blocks that hold the keys of a head while their warp groups go through its query
// tiles: which of these a block has, and what lies in shared memory.
#pragma once

#include "device/attention_boxes.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// The query tiles of a block, of 64 rows: those of a head, or a part of them if there are 2^n
// `pieces`. They go from the last to the first. A piece has pairs of tiles, of which one is as far
// from the front as the other from the back: in a causal mask all pairs see as much.
struct HeldTiles {
  int of_head, piece, log_pieces;
  int q_len;
  const Band& band;

  __device__ __forceinline__ int count() const { return high() + low(); }

  __device__ __forceinline__ int tile(int number) const {
    return number < high() ? of_head - 1 - piece - (number << log_pieces)
                           : piece + ((count() - 1 - number) << log_pieces);
  }

  __device__ __forceinline__ KeyBoxes boxes(int tile) const {
    return boxes_of_tile(band, tile, q_len);
  }
  // Those of all tiles.
  __device__ __forceinline__ KeyBoxes boxes() const {
    return boxes_of_tiles(band, tile(count() - 1), tile(0), q_len);
  }

 private:
  // How many lie in the upper half of the head, with the one in the middle, and in the lower half.
  __device__ __forceinline__ int high() const { return share((of_head + 1) / 2); }
  __device__ __forceinline__ int low() const { return share(of_head / 2); }
  __device__ __forceinline__ int share(int pairs) const {
    return (pairs - piece + (1 << log_pieces) - 1) >> log_pieces;
  }
};

// Places of 64 rows each: for the queries of the tiles, in their order, then for keys and for
// values, from the top. Each has a barrier, that says when they are there. The front is aligned to
// 1024 bytes. Outputs take the place of the queries.
template <typename Shape, int Groups>
struct HeldShared {
  static constexpr int kPlaces = Shape::kSlots;

  unsigned char places[kPlaces][Shape::kTileBytes];
  uint4 ones[Shape::kAddsUp ? 128 : 1];  // 16 rows of a panel
  unsigned long long here[kPlaces];
  int claimed;
  int next[2][Groups];  // in turn: warps may be one tile apart

  // By one thread.
  __device__ __forceinline__ void init() {
    claimed = Groups;
#pragma unroll
    for (int place = 0; place < kPlaces; ++place)
      init_barrier(shared_address(&here[place]), 1);
    publish_barriers();
  }

  __device__ __forceinline__ void load(int place, const TensorMap& map, TileOrigin origin) {
    const unsigned barrier = shared_address(&here[place]);
    arrive_expecting(barrier, Shape::kTileBytes);
    load_tile(shared_address(places[place]), map, barrier, origin);
  }
  __device__ __forceinline__ unsigned wait(int place) {
    wait_for_phase(shared_address(&here[place]), 0);
    return shared_address(places[place]);
  }
};

}  // namespace stof
