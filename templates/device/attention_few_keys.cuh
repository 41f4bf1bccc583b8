// Attention of 16 queries with all of their keys at once, by warps that share the keys of the first
// product and the columns of the second.
#pragma once

#include "device/attention_softmax.cuh"
#include "device/pack.cuh"
#include "device/stream.cuh"
#include "device/tile_copy.cuh"

namespace stof {

// `Pieces` of 16 keys belong to each of `Warps` warps.
template <int HeadDim, int ValueDim, int Warps, int Pieces>
struct FewKeysShape {
  static constexpr int kRows = 16, kPieceKeys = 16;
  static constexpr int kWarpKeys = Pieces * kPieceKeys, kKeys = Warps * kWarpKeys;
  static constexpr int kHeadColumns = (HeadDim + 63) / 64 * 64, kHeadRowBytes = 2 * kHeadColumns;
  static constexpr int kValueColumns = (ValueDim + 63) / 64 * 64;
  static constexpr int kValueRowBytes = 2 * kValueColumns;
  static constexpr int kWarpColumns = kValueColumns / Warps;  // of outputs
  static_assert(kWarpColumns % 16 == 0, "of two neighbouring blocks each");

  struct Shared {
    unsigned char queries[kRows * kHeadRowBytes];
    unsigned char keys[kKeys * kHeadRowBytes];
    unsigned char values[kKeys * kValueRowBytes];
    uint4 probabilities[Warps * Pieces][32];  // the A fragment of each lane
    float highest[kRows][Warps], sums[kRows][Warps];
  };
};

// Asks for `Rows` rows of `Dim` elements from row `first` on, by all threads. What lies behind row
// `last` or column Dim becomes zero.
template <int Rows, int Dim, int Columns, int Threads, typename T>
__device__ __forceinline__ void copy_rows(unsigned char* tile, const T* all, unsigned row_bytes,
                                          int first, int last) {
  constexpr int kChunks = Columns / 8, kRowsAtOnce = Threads / kChunks;
  static_assert(kRowsAtOnce % 8 == 0, "eight rows on, the swizzle is the same");
  const int chunk = threadIdx.x % kChunks, row = threadIdx.x / kChunks;
  const unsigned place = shared_address(tile) + swizzled_offset<2 * Columns>(row, chunk);
#pragma unroll
  for (int i = 0; i < Rows; i += kRowsAtOnce) {
    const bool exists = first + row + i <= last && 8 * chunk < Dim;
    if (Rows % kRowsAtOnce == 0 || row + i < Rows) {
      cp_async_16(place + i * 2 * Columns, strides_on(all + 8 * chunk, first + row + i, row_bytes),
                  exists ? 16 : 0);
    }
  }
}

// What 16 rows see of `Pieces` times 16 keys, a bit for each of the lane's scores: those of group
// `rows` and of the keys from piece number `piece` on. `bitmaps` has one of each tile of 64 rows
// and 64 keys, of which there are `tiles` in a row.
template <int Pieces>
__device__ __forceinline__ unsigned bits_of_pieces(const unsigned* __restrict__ bitmaps, int rows,
                                                   int piece, int tiles, int lane) {
  const unsigned* const row = bitmaps + (rows / 4 * tiles * 4 + rows % 4) * 32 + lane;
  const auto word = [&](int tile) { return tile < tiles ? __ldg(row + tile * 128) : 0; };
  const unsigned first = word(piece / 4), next = 4 % Pieces == 0 ? 0 : word(piece / 4 + 1);
  return __funnelshift_r(first, next, piece % 4 * 8);
}

// What a lane has of a row of outputs, in two neighbouring blocks of eight columns of a warp, to
// `row`, where the first block begins. Of two neighbours one takes the first block, the other the
// second, so that each has four neighbouring columns.
template <typename T>
__device__ __forceinline__ void store_blocks(T* row, const float (&first)[2],
                                             const float (&second)[2], bool exists, int columns,
                                             int lane) {
  const bool is_odd = lane % 2 != 0;
  const unsigned in_first = pack2<T>(first[0], first[1]);
  const unsigned in_second = pack2<T>(second[0], second[1]);
  const unsigned theirs = __shfl_xor_sync(0xffffffffu, is_odd ? in_first : in_second, 1);
  const int column = (is_odd ? 8 : 0) + lane % 4 / 2 * 4;
  if (exists && column < columns) {
    *reinterpret_cast<uint2*>(row + column) =
        is_odd ? uint2{theirs, in_second} : uint2{in_first, theirs};
  }
}

}  // namespace stof
