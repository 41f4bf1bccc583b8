// Attention by wgmma: what lies in shared memory, and what threads do with accumulators of 64 rows,
// in which element e of the n-th 8-column block of a thread is [4 n + e].
#pragma once

#include "device/attention_grid.cuh"
#include "device/mbarrier.cuh"
#include "device/mma.cuh"
#include "device/pack.cuh"
#include "device/store_rows.cuh"
#include "device/tensor_map.cuh"
#include "device/warp_group.cuh"
#include "device/wgmma.cuh"

namespace stof {

// Sizes of a block. Tiles of Q, K, V and O lie in panels of 64 columns, 128 bytes a row.
// With AddsUp, values that fill a panel are followed by 8 columns of ones, which have the second
// product make the sums of the probabilities as well, those that it multiplies: an eighth more of
// it, instead of an addition for each score.
template <int HeadDim, int ValueDim, int TileQ, int TileK, int Slots, int QuerySlots,
          bool AddsUp = false>
struct AttentionShape {
  static constexpr int kGroups = TileQ / 64;         // of 64 query rows, a warp group each
  static constexpr int kTiles = TileK / 64;          // key tiles of a step
  static constexpr int kEntries = kTiles * kGroups;  // what each group sees of each of them
  static constexpr int kSlots = Slots, kQuerySlots = QuerySlots;
  static constexpr int kKeyPanels = (HeadDim + 63) / 64, kValuePanels = (ValueDim + 63) / 64;
  static constexpr int kPanels = kKeyPanels > kValuePanels ? kKeyPanels : kValuePanels;
  static constexpr int kValueColumns = (ValueDim + 15) / 16 * 16;
  static constexpr bool kAddsUp = AddsUp;
  static_assert(!AddsUp || kValueColumns == 64);
  static constexpr int kOutputs = kValueColumns / 2 + (kAddsUp ? 4 : 0);  // of a thread
  static constexpr int kRowBytes = 128, kTileBytes = 64 * kRowBytes;      // of a panel
  static constexpr int kQueryPanelBytes = TileQ * kRowBytes, kPanelBytes = TileK * kRowBytes;
  static constexpr int kBitmapBytes = 512;
};

// What the consumers know of the key tiles of a step: the first key of each, and what each 64
// queries see of it.
template <typename Shape>
struct StepNotes {
  int key[Shape::kTiles];
  int status[Shape::kEntries];
};

// What they know of a query tile.
struct QueryTile {
  int steps;  // kNoTile: the one before was the last
  int batch, head, plane, first_query;
  int key_end;              // keys from here on do not exist
  int last_tile, last_key;  // the last key tile: its place in the last step, its first key
  EntryPart part;
  int long_tile;  // which one it is of those in parts
};
constexpr int kNoTile = -1;

// The scores of one of the 64-key tiles of a step.
template <int Count>
__device__ __forceinline__ float (&scores_of_tile(float (&s)[Count], int tile))[32] {
  return reinterpret_cast<float(&)[32]>(s[32 * tile]);
}

// Probabilities as the A operand of the second product, 16 keys a piece.
template <typename T, int Count>
__device__ __forceinline__ void pack_probabilities(unsigned (&p)[Count / 8][4],
                                                   const float (&s)[Count]) {
#pragma unroll
  for (int i = 0; i < Count / 2; ++i)
    p[i / 4][i % 4] = pack2<T>(s[2 * i], s[2 * i + 1]);
}

// The queries of a group, 16 columns at a time, as the A operand of the first product: where they
// lie, or in registers.
template <typename Shape, int Steps, bool InRegisters>
struct QueryOperand {
  unsigned operand;

  __device__ __forceinline__ void take(unsigned queries, int warp, int) {
    operand = k_major_operand(queries + warp / 4 * Shape::kTileBytes);
  }
};
template <typename Shape, int Steps>
struct QueryOperand<Shape, Steps, true> {
  unsigned operand[Steps][4];

  __device__ __forceinline__ void take(unsigned queries, int warp, int lane) {
    const unsigned rows = queries + warp * 16 * Shape::kRowBytes;
#pragma unroll
    for (int i = 0; i < Steps; ++i) {
      ldmatrix_x4(operand[i], rows + i / 4 * Shape::kQueryPanelBytes +
                                  swizzled_offset<128>(lane % 16, i % 4 * 2 + lane / 16));
    }
  }
};

// The values of a step as the B operand of the second product. The ones behind them lie elsewhere
// in shared memory, and there are 16 rows of them, the same for all of its keys.
template <typename Shape, int PanelBytes = Shape::kPanelBytes>
__device__ __forceinline__ unsigned values_operand(unsigned values, unsigned ones) {
  return column_major_operand(values, Shape::kAddsUp ? ones - values : PanelBytes);
}

// By all threads, before a barrier.
template <typename T, int Count>
__device__ __forceinline__ void fill_ones(uint4 (&ones)[Count]) {
  const unsigned one = pack2<T>(1, 1);
  for (int i = threadIdx.x; i < Count; i += blockDim.x)
    ones[i] = {one, one, one, one};
  fence_for_wgmma();
}

// The outputs of a thread without the sums behind them.
template <typename Shape>
__device__ __forceinline__ float (
    &without_sums(float (&outputs)[1][Shape::kOutputs]))[1][Shape::kValueColumns / 2] {
  return reinterpret_cast<float(&)[1][Shape::kValueColumns / 2]>(outputs);
}

// Has the rows know their sums, over all lanes.
template <typename Shape, typename Rows>
__device__ __forceinline__ void take_sums(Rows& rows, const float (&outputs)[1][Shape::kOutputs]) {
  if constexpr (Shape::kAddsUp) {
    rows.sum[0][0] = outputs[0][Shape::kValueColumns / 2];
    rows.sum[0][1] = outputs[0][Shape::kValueColumns / 2 + 2];
  } else {
    rows.add_lanes();
  }
}

// Zeroes the rows from `valid` on of a tile of `Rows` rows, in each of its panels, by a warp group.
template <int Panels, int PanelBytes, int Rows = 64>
__device__ __forceinline__ void clear_rows(unsigned tile, int valid, int thread) {
#pragma unroll 1
  for (int i = max(valid, 0) * 8 + thread; i < Rows * 8; i += 128) {
#pragma unroll
    for (int panel = 0; panel < Panels; ++panel) {
      asm volatile(
          "st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + panel * PanelBytes + i * 16),
          "r"(0)
          : "memory");
    }
  }
}

// Has rows of panels come, so many bytes one behind the other. By one thread.
template <int Panels, int PanelBytes>
__device__ __forceinline__ void load_panels(unsigned shared, const TensorMap& map, unsigned barrier,
                                            TileOrigin origin) {
#pragma unroll
  for (int panel = 0; panel < Panels; ++panel) {
    origin.column = 64 * panel;
    load_tile(shared + panel * PanelBytes, map, barrier, origin);
  }
}

// The same, as all that a barrier waits for.
template <int Panels, int PanelBytes>
__device__ __forceinline__ void load_all_panels(unsigned char* tile, const TensorMap& map,
                                                unsigned long long& barrier, TileOrigin origin) {
  const unsigned here = shared_address(&barrier);
  arrive_expecting(here, Panels * PanelBytes);
  load_panels<Panels, PanelBytes>(shared_address(tile), map, here, origin);
}

// Begins to write 16 rows that lie in panels, the first of which has them at `rows`. By one thread.
template <typename Shape>
__device__ __forceinline__ void store_panels(const TensorMap& o, unsigned rows, TileOrigin origin) {
#pragma unroll
  for (int panel = 0; panel < Shape::kValuePanels; ++panel) {
    origin.column = panel * 64;
    store_tile(o, rows + panel * Shape::kQueryPanelBytes, origin);
  }
  commit_stores();
}

// Begins to write the 16 rows of a warp, whose first element is `origin`, by way of its rows of
// `queries`, which no one reads any more, nor writes before they are read.
template <typename Shape, typename T>
__device__ __forceinline__ void store_rows(const TensorMap& o, unsigned queries,
                                           const float (&x)[Shape::kValueColumns / 2],
                                           TileOrigin origin) {
  const unsigned rows = queries + threadIdx.x / 32 * 16 * Shape::kRowBytes;
  leave_rows<T, Shape::kQueryPanelBytes>(rows, x, threadIdx.x % 32);
  fence_for_wgmma();
  __syncwarp();
  if (threadIdx.x % 32 == 0)
    store_panels<Shape>(o, rows, origin);
}

// Rings and their barriers; `here` when a slot is full, `free` when it may be filled again. The
// front is aligned to 1024 bytes. Outputs take the place of the queries.
template <typename Shape>
struct AttentionShared {
  unsigned char queries[Shape::kQuerySlots][Shape::kPanels * Shape::kQueryPanelBytes];
  unsigned char slots[Shape::kSlots][Shape::kPanels * Shape::kPanelBytes];  // a step of K or V each
  uint4 ones[Shape::kAddsUp ? 128 : 1];                                     // 16 rows of a panel
  unsigned bitmaps[Shape::kSlots][Shape::kEntries][Shape::kBitmapBytes / 4];
  StepNotes<Shape> notes[Shape::kSlots];
  QueryTile tiles[Shape::kQuerySlots];
  unsigned long long queries_here[Shape::kQuerySlots], queries_free[Shape::kQuerySlots];
  unsigned long long here[Shape::kSlots], free[Shape::kSlots];

  // By one thread.
  __device__ __forceinline__ void init_barriers() {
    constexpr int kConsumerWarps = 4 * Shape::kGroups;
    for (int slot = 0; slot < Shape::kQuerySlots; ++slot) {
      init_barrier(shared_address(&queries_here[slot]), 1);
      init_barrier_of_warps(shared_address(&queries_free[slot]), kConsumerWarps);
    }
    for (int slot = 0; slot < Shape::kSlots; ++slot) {
      init_barrier(shared_address(&here[slot]), Shape::kEntries);
      init_barrier_of_warps(shared_address(&free[slot]), kConsumerWarps);
    }
    publish_barriers();
  }

  // Of a consumer, once they are there.
  __device__ __forceinline__ const QueryTile& wait_for_queries(
      const RingPlace<Shape::kQuerySlots>& at) {
    wait_for_phase(shared_address(&queries_here[at.slot]), at.parity);
    return tiles[at.slot];
  }
  // The next slot of a consumer, once it is full.
  __device__ __forceinline__ unsigned take_slot(RingPlace<Shape::kSlots>& at) {
    const unsigned slot = at.slot;
    wait_for_phase(shared_address(&here[slot]), at.parity);
    at.advance();
    return slot;
  }

  // Values past the length may be anything, and 0 * NaN would spoil the sums. By a warp group,
  // before it takes the last values of a query tile.
  __device__ __forceinline__ void clear_values(unsigned slot, const QueryTile& tile, int group) {
    const int valid = tile.key_end - tile.last_key;
    if (valid >= 64)
      return;
    const unsigned values = shared_address(slots[slot]) + tile.last_tile * Shape::kTileBytes;
    clear_rows<Shape::kValuePanels, Shape::kPanelBytes>(values, valid, threadIdx.x % 128);
    fence_for_wgmma();
    group_barrier<Shape::kGroups>(group);
  }

  // By a warp that is done with them, once its outputs have left them.
  __device__ __forceinline__ void free_queries(unsigned slot) {
    wait_for_reads_of_stores<0>();
    arrive_of_warp(shared_address(&queries_free[slot]));
  }
};

}  // namespace stof
