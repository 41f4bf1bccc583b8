// Statistics of rows of which each block of a cluster has some columns (sm_90).
#pragma once

#include "device/cluster.cuh"
#include "device/mbarrier.cuh"

namespace stof {

// Of values: their mean, and the sum of the squares of what they are off it.
struct Moments {
  float mean, squares;
};

// The sum over the four lanes that share the rows of an accumulator.
__device__ __forceinline__ float add_quad(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Eight bytes to the same place of the shared memory of another block of the cluster, where they
// arrive at the barrier.
__device__ __forceinline__ void send_moments(unsigned rank, const Moments* place,
                                             unsigned long long* barrier, Moments moments) {
  asm volatile(
      "{ .reg .b32 place, barrier;\n"
      "mapa.shared::cluster.u32 place, %0, %2;\n"
      "mapa.shared::cluster.u32 barrier, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [place], {%3, %4}, "
      "[barrier]; }" ::"r"(shared_address(place)),
      "r"(shared_address(barrier)), "r"(rank), "r"(__float_as_uint(moments.mean)),
      "r"(__float_as_uint(moments.squares))
      : "memory");
}

// What the blocks of a cluster tell each other, tile after tile of `Rows` rows and as many columns
// in each block. Tiles take turns with two boards: who writes to one again has heard from all
// blocks since, of the other board, and so they have read it.
template <int Blocks, int Rows, int Columns>
struct RowStatistics {
  Moments boards[2][Blocks][Rows];
  unsigned long long here[2];

  // By one thread, before a barrier of the cluster.
  __device__ __forceinline__ void init_barriers() {
    init_barrier(shared_address(&here[0]), 1);
    init_barrier(shared_address(&here[1]), 1);
    publish_barriers();
  }

  // Once for each tile, by one thread.
  __device__ __forceinline__ void expect(int tile) {
    arrive_expecting(shared_address(&here[tile % 2]), Blocks * Rows * int(sizeof(Moments)));
  }

  // By the four lanes of a quad, each to some of the blocks.
  __device__ __forceinline__ void send(int tile, int block, int row, Moments moments) {
#pragma unroll
    for (int to = 0; to < Blocks; to += 4) {
      const int rank = to + int(threadIdx.x) % 4;
      if (rank < Blocks) {
        send_moments(rank, &boards[tile % 2][block][row], &here[tile % 2], moments);
      }
    }
  }

  __device__ __forceinline__ void wait(int tile) {
    wait_for_phase(shared_address(&here[tile % 2]), tile / 2 % 2);
  }

  // Of whole rows.
  __device__ __forceinline__ Moments merged(int tile, int row) const {
    Moments all = {0.0f, 0.0f};
#pragma unroll
    for (int block = 0; block < Blocks; ++block) {
      all.mean += boards[tile % 2][block][row].mean;
      all.squares += boards[tile % 2][block][row].squares;
    }
    all.mean /= float(Blocks);
#pragma unroll
    for (int block = 0; block < Blocks; ++block) {
      const float distance = boards[tile % 2][block][row].mean - all.mean;
      all.squares = fmaf(float(Columns) * distance, distance, all.squares);
    }
    return all;
  }
};

}  // namespace stof
