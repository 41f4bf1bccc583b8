// Bulk copies (sm_90): tiles of tensors by TMA, with 128-byte rows swizzled as swizzled_offset<128>
// does, and plain bytes. Each is asked for by one thread.
#pragma once

#include "device/async_copy.cuh"

namespace stof {

// A CUtensorMap, as `const __grid_constant__ TensorMap`.
struct alignas(128) TensorMap {
  unsigned long long words[16];
};

// Of four axes; the coordinates of a tile's first element, from the innermost on. What lies outside
// of the tensor is read as zero and not written.
struct TileOrigin {
  int column, row, head, batch;
};

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
template <typename... Maps>
__device__ __forceinline__ void prefetch_maps(const Maps&... maps) {
  (prefetch_map(maps), ...);
}

// All bytes of the tile arrive at the barrier.
__device__ __forceinline__ void load_tile(unsigned shared, const TensorMap& map, unsigned barrier,
                                          TileOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(origin.column), "r"(origin.row), "r"(origin.head),
      "r"(origin.batch)
      : "memory");
}

// The same of three axes and of two.
struct MatrixOrigin {
  int column, row, batch;
};
__device__ __forceinline__ void load_tile(unsigned shared, const TensorMap& map, unsigned barrier,
                                          MatrixOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(origin.column), "r"(origin.row), "r"(origin.batch)
      : "memory");
}
struct RowOrigin {
  int column, row;
};
__device__ __forceinline__ void load_tile(unsigned shared, const TensorMap& map, unsigned barrier,
                                          RowOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(origin.column), "r"(origin.row)
      : "memory");
}

// Of what is read once: the L2 cache lets go of it first.
__device__ __forceinline__ void load_tile_once(unsigned shared, const TensorMap& map,
                                               unsigned barrier, MatrixOrigin origin) {
  asm volatile(
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], policy; }" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(origin.column), "r"(origin.row), "r"(origin.batch)
      : "memory");
}
__device__ __forceinline__ void load_tile_once(unsigned shared, const TensorMap& map,
                                               unsigned barrier, RowOrigin origin) {
  asm volatile(
      "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], policy; }" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(origin.column), "r"(origin.row)
      : "memory");
}

// Bytes and both addresses are multiples of 16.
__device__ __forceinline__ void load_bytes(unsigned shared, const void* global, unsigned bytes,
                                           unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared),
      "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(barrier)
      : "memory");
}

// After a fence of the proxy by those who wrote the tile, and a barrier. Before it ends, or shared
// memory is written again, the thread that stores waits until its tiles have been read.
__device__ __forceinline__ void store_tile(const TensorMap& map, unsigned shared,
                                           TileOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(&map),
      "r"(shared), "r"(origin.column), "r"(origin.row), "r"(origin.head), "r"(origin.batch)
      : "memory");
}
__device__ __forceinline__ void store_tile(const TensorMap& map, unsigned shared,
                                           MatrixOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
          &map),
      "r"(shared), "r"(origin.column), "r"(origin.row), "r"(origin.batch)
      : "memory");
}
__device__ __forceinline__ void store_tile(const TensorMap& map, unsigned shared,
                                           RowOrigin origin) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
          &map),
      "r"(shared), "r"(origin.column), "r"(origin.row)
      : "memory");
}
__device__ __forceinline__ void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until shared memory of all but the latest `Pending` commits has been read.
template <int Pending>
__device__ __forceinline__ void wait_for_reads_of_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace stof
