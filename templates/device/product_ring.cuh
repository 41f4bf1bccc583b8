// What the tiles of a product go through that TMA feeds (sm_90): a ring of stages in shared memory,
// each with a tile of x and one of w for 64 of k. One thread, the producer, has them brought; warp
// groups, the consumers, have 64 rows of the tile of y each.
#pragma once

#include "device/mbarrier.cuh"
#include "device/store_rows.cuh"
#include "device/tensor_map.cuh"
#include "device/wgmma.cuh"

namespace stof {

// Panels of 16 rows of 64 columns of y, `Panels` for each warp.
template <int Warps, int Panels>
struct StorePanels {
  unsigned char bytes[Warps][Panels][2048];
};
template <int Warps>
struct StorePanels<Warps, 0> {};

// The shared memory of a block. Each consumer warp has panels of its own: the next tiles arrive,
// and it goes on, while TMA stores what it left there.
template <int TileM, int TileN, int Stages, int Panels>
struct ProductRing {
  static constexpr int kRowBytes = 128;  // 64 elements
  static constexpr int kBytesX = TileM * kRowBytes;
  static constexpr int kStageBytes = (TileM + TileN) * kRowBytes;
  static constexpr int kWarps = TileM / 16;
  using Place = RingPlace<Stages>;

  unsigned char stages[Stages][kStageBytes];
  StorePanels<kWarps, Panels> panels;
  unsigned long long full[Stages], free[Stages];

  // By one thread, before a barrier of the block.
  __device__ __forceinline__ void init_barriers() {
    for (int i = 0; i < Stages; ++i) {
      init_barrier(shared_address(&full[i]), 1);
      init_barrier(shared_address(&free[i]), kWarps);
    }
    publish_barriers();
  }

  // The producer's next stage, once it is free. load(stage, barrier) asks for so many bytes.
  template <typename Load>
  __device__ __forceinline__ void fill(Place& at, const Load& load, unsigned bytes = kStageBytes) {
    const unsigned barrier = shared_address(&full[at.slot]);
    wait_for_phase(shared_address(&free[at.slot]), at.parity ^ 1);
    arrive_expecting(barrier, bytes);
    load(shared_address(stages[at.slot]), barrier);
    at.advance();
  }

  // Asks for a stage's part of a weight that lies as [n, k] (IsTurned) or as [k, n], and is its
  // operand. `origin` has n and then k.
  template <bool IsTurned, typename Origin>
  __device__ __forceinline__ static void load_weight(unsigned stage, const TensorMap& w,
                                                     unsigned barrier, Origin origin) {
    if constexpr (IsTurned) {
      const int column = origin.column;
      origin.column = origin.row;
      origin.row = column;
      load_tile(stage + kBytesX, w, barrier, origin);
    } else {
#pragma unroll
      for (int panel = 0; panel < TileN / 64; ++panel, origin.column += 64) {
        load_tile(stage + kBytesX + panel * 64 * kRowBytes, w, barrier, origin);
      }
    }
  }
  template <bool IsTurned>
  __device__ __forceinline__ static unsigned weight_operand(unsigned stage, int k) {
    const unsigned tile = stage + kBytesX;
    return IsTurned ? stof::advance(k_major_operand(tile), 2 * k)
                    : stof::advance(column_major_operand(tile, 64 * kRowBytes), kRowBytes * k);
  }
  // Of the 64 rows of x that a consumer group has.
  __device__ __forceinline__ static unsigned rows_operand(unsigned stage, int group, int k) {
    return stof::advance(k_major_operand(stage + group * 64 * kRowBytes), 2 * k);
  }

  // Of a consumer: multiply(stage, accumulate) starts the wgmmas of one step, and meanwhile(stage)
  // may read it. Their sums may be used after it and hold().
  template <typename Multiply, typename Meanwhile>
  __device__ __forceinline__ void add_up(Place& at, int steps, const Multiply& multiply,
                                         const Meanwhile& meanwhile) {
    unsigned last = 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_phase(shared_address(&full[at.slot]), at.parity);
      wgmma_begin();
      multiply(shared_address(stages[at.slot]), step > 0);
      wgmma_commit();
      meanwhile(shared_address(stages[at.slot]));
      if (step > 0) {
        wgmma_wait<1>();
        release(last);
      }
      last = at.slot;
      at.advance();
    }
    wgmma_wait<0>();
    release(last);
  }

  template <typename Multiply>
  __device__ __forceinline__ void add_up(Place& at, int steps, const Multiply& multiply) {
    add_up(at, steps, multiply, [](unsigned) {});
  }

  // Of a consumer: use(stage) reads what else the producer has brought.
  template <typename Use>
  __device__ __forceinline__ void take(Place& at, const Use& use) {
    wait_for_phase(shared_address(&full[at.slot]), at.parity);
    use(shared_address(stages[at.slot]));
    release(at.slot);
    at.advance();
  }

  // Stores 64 columns of a warp's 16 rows, those of panel number `panel` of its tile; origin is
  // where they begin in y. Before the warp ends, its first lane waits_for_reads_of_stores<0>.
  template <typename T, typename Origin>
  __device__ __forceinline__ void store(const TensorMap& y, const float (&values)[32], int panel,
                                        Origin origin) {
    const int lane = int(threadIdx.x) % 32;
    const unsigned rows = shared_address(panels.bytes[threadIdx.x / 32][panel % Panels]);
    if (lane == 0 && panel > 0) {
      wait_for_reads_of_stores<Panels - 1>();
    } else if (lane == 0) {
      wait_for_reads_of_stores<0>();
    }
    __syncwarp();
    leave_rows<T, 0>(rows, values, lane);
    fence_for_wgmma();
    __syncwarp();
    if (lane == 0) {
      store_tile(y, rows, origin);
      commit_stores();
    }
  }

 private:
  __device__ __forceinline__ void release(unsigned slot) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      arrive(shared_address(&free[slot]));
    }
  }
};

}  // namespace stof
