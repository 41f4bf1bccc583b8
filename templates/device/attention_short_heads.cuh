// Attention of short heads, one behind the other: which ones a block has, and what lies in shared
// memory.
#pragma once

#include "device/attention_boxes.cuh"
#include "device/attention_wgmma.cuh"

namespace stof {

// A run of heads, as long as that of any other block but for one: where it begins or goes on, and
// how many are left.
struct HeadRun {
  int head, batch, left;
  int heads;  // of a batch element

  // Contracts allow 2^24 heads, which times 255 blocks are numbers of 32 bits; a block has an SM,
  // and sm_90 no more.
  __device__ __forceinline__ HeadRun(int heads, int batches) : heads(heads) {
    const unsigned all = heads * batches;
    const int first = blockIdx.x * all / gridDim.x;
    left = static_cast<int>((blockIdx.x + 1) * all / gridDim.x) - first;
    const Division of_heads = divide(first, heads);
    head = of_heads.rest;
    batch = of_heads.quotient;
  }

  __device__ __forceinline__ void advance() {
    --left;
    if (++head == heads) {
      head = 0;
      ++batch;
    }
  }
  // 64 rows of the head `count` heads further on.
  __device__ __forceinline__ TileOrigin tile_ahead(int count, int tile) const {
    const Division of_heads = divide(head + count, heads);
    return {0, 64 * tile, of_heads.rest, batch + of_heads.quotient};
  }
};

// A box of 64 keys of a head in the run; one head behind the other, each from the top.
struct RunBox {
  HeadRun run;
  const KeyBoxes& of_head;
  int kv_head_share;  // 2^20 over how many heads share keys
  int number;         // of the box in the head

  __device__ __forceinline__ TileOrigin origin() const {
    return {0, 64 * number, run.head * kv_head_share >> 20, run.batch};
  }
  __device__ __forceinline__ void advance() {
    if (--number < of_head.bottom()) {
      number = of_head.top;
      run.advance();
    }
  }
};

// A ring of boxes of 64 keys and their values, and two query tiles of each warp group in turn, each
// with a barrier that says when it is there. The front is aligned to 1024 bytes. Outputs take the
// place of the queries. There is no warp for loads, whose registers consumers have: the last warp
// that lets go of a box has another one come.
template <typename Shape, int Groups>
struct ShortHeadsShared {
  using Box = RingPlace<Shape::kSlots>;

  unsigned char queries[2][Groups][Shape::kPanels * Shape::kQueryPanelBytes];
  unsigned char keys[Shape::kSlots][Shape::kKeyPanels * Shape::kPanelBytes];
  unsigned char values[Shape::kSlots][Shape::kValuePanels * Shape::kPanelBytes];
  unsigned long long queries_here[2][Groups];
  unsigned long long keys_here[Shape::kSlots], values_here[Shape::kSlots];
  int keys_freed[Shape::kSlots], values_freed[Shape::kSlots];  // by so many warps

  // By one thread.
  __device__ __forceinline__ void init() {
    for (int i = 0; i < 2 * Groups; ++i)
      init_barrier(shared_address(&queries_here[i / Groups][i % Groups]), 1);
    for (int slot = 0; slot < Shape::kSlots; ++slot) {
      init_barrier(shared_address(&keys_here[slot]), 1);
      init_barrier(shared_address(&values_here[slot]), 1);
      keys_freed[slot] = values_freed[slot] = 0;
    }
    publish_barriers();
  }

  // These by one thread; of boxes behind the run nothing comes.
  __device__ __forceinline__ void load_queries(const TensorMap& q, int group, int turn,
                                               TileOrigin origin) {
    load_all_panels<Shape::kKeyPanels, Shape::kTileBytes>(queries[turn][group], q,
                                                          queries_here[turn][group], origin);
  }
  __device__ __forceinline__ void load_keys(const TensorMap& k, const RunBox& box, int slot) {
    if (box.run.left > 0)
      load_all_panels<Shape::kKeyPanels, Shape::kTileBytes>(keys[slot], k, keys_here[slot],
                                                            box.origin());
  }
  __device__ __forceinline__ void load_values(const TensorMap& v, const RunBox& box, int slot) {
    if (box.run.left > 0)
      load_all_panels<Shape::kValuePanels, Shape::kTileBytes>(values[slot], v, values_here[slot],
                                                              box.origin());
  }

  __device__ __forceinline__ unsigned wait_for_queries(int group, int turn, unsigned parity) {
    wait_for_phase(shared_address(&queries_here[turn][group]), parity);
    return shared_address(queries[turn][group]);
  }
  __device__ __forceinline__ unsigned wait_for_keys(const Box& at) {
    wait_for_phase(shared_address(&keys_here[at.slot]), at.parity);
    return shared_address(keys[at.slot]);
  }
  __device__ __forceinline__ unsigned wait_for_values(const Box& at) {
    wait_for_phase(shared_address(&values_here[at.slot]), at.parity);
    return shared_address(values[at.slot]);
  }

  // By each warp of all groups, once for each box and in their order, when its products are over or
  // it has none; `ahead` is the box that comes next to this place. It waits until the box is there,
  // so that no warp is a turn of the ring ahead of others, whose count it would take part in.
  __device__ __forceinline__ void free_keys(const Box& at, const TensorMap& k,
                                            const RunBox& ahead) {
    wait_for_keys(at);
    if (is_last_of_warps(keys_freed[at.slot]))
      load_keys(k, ahead, at.slot);
    __syncwarp();
  }
  __device__ __forceinline__ void free_values(const Box& at, const TensorMap& v,
                                              const RunBox& ahead) {
    wait_for_values(at);
    if (is_last_of_warps(values_freed[at.slot]))
      load_values(v, ahead, at.slot);
    __syncwarp();
  }

 private:
  // In one thread of the last warp. What products read is read when they have been waited for, so
  // the count orders nothing; as acq_rel it is a fence as well, of 700 clocks on an H200.
  __device__ __forceinline__ static bool is_last_of_warps(int& freed) {
    __syncwarp();
    if (threadIdx.x % 32 != 0)
      return false;
    int before;
    asm volatile("atom.relaxed.cta.shared::cta.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "r"(shared_address(&freed))
                 : "memory");
    if (before < 4 * Groups - 1)
      return false;
    freed = 0;
    return true;
  }
};

}  // namespace stof
