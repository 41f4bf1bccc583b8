// What modifies the scores of attention before they are masked.
#pragma once

#include "device/async_copy.cuh"
#include "device/attention_mask.cuh"
#include "device/attention_softmax.cuh"
#include "device/expression.cuh"
#include "device/mma.cuh"
#include "device/numeric.cuh"
#include "device/pack.cuh"

namespace stof {

constexpr float kScoreLog2E = 1.4426950408889634f;

// For scores alone, which are good to 2^-18 of their value: a division is a product with a
// reciprocal, which the compiler makes once where the divisor is one number for all scores.
__device__ __forceinline__ float score_quotient(float a, float b) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(b));
  return a * reciprocal;
}

// Of numbers up to kNearTanh, but for signs, to 4e-6 of the result: the polynomial of degree 7 that
// is nearest to it.
constexpr float kNearTanh = 0.625f;

__device__ __forceinline__ float near_tanh(float x) {
  const float square = x * x;
  const float factor = fmaf(square, fmaf(square, -0.04051472f, 0.13048275f), -0.33315511f);
  return fmaf(x * square, factor, x);
}

// To 4e-6 of the result. 1 - 2 / (e^2x + 1) loses digits near 0. Both are made, without a branch:
// tanhf takes three times as long.
__device__ __forceinline__ float score_tanh(float x) {
  constexpr float kTwiceLog2E = 2.885390082f;
  const float far = 1.0f - score_quotient(2.0f, exp2_approx(x * kTwiceLog2E) + 1.0f);
  return fabsf(x) < kNearTanh ? near_tanh(x) : far;
}

// A bit for each of 16 bytes in shared memory: whether it is not 0.
__device__ __forceinline__ unsigned bits_of_chunk(unsigned shared) {
  unsigned words[4], bits = 0;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared)
               : "memory");
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned highest = (((words[i] & 0x7f7f7f7f) + 0x7f7f7f7f) | words[i]) & 0x80808080;
    bits |= highest * 0x204081u >> 28 << 4 * i;  // the four of them side by side
  }
  return bits;
}

// A score modifier of 16 rows and 2 * Count keys, on a lane's scores. Keys that do not exist have
// the scores of some that do.
//
// Of a tensor whose rows lie along keys the warp copies its part to a tile of shared memory, a row
// after the other, and reads it in the order of scores. Read from memory, two keys at a time,
// scores would wait for the L1, which looks for eight lines for each of 16 loads. Of bytes a lane
// copies what it reads: 16 keys of its rows, of which it makes bits that it shares with its quad.
// Rows that do not exist become zeros: copied as the last one, they would have all CTAs read one
// place in L2, which serves a reader every 2.3 ns.
template <int Count, typename Modifier>
struct ModifiedScores {
  static constexpr bool kHasTiles = Modifier::kTiles > 0 && Count % 32 == 0 && 128 % Count == 0;
  static constexpr int kChunks = Count / 4;  // of 16 bytes, in a row of a tile
  static constexpr int kRowBytes = 16 * kChunks;
  static constexpr int kTileBytes = 16 * kRowBytes;
  static constexpr bool kHasBytes = kHasTiles && Modifier::kByteTiles != 0;
  static constexpr bool kHasPairs =
      kHasTiles && Modifier::kByteTiles != (1u << Modifier::kTiles) - 1;
  static constexpr int kKeysOfChunk = kHasBytes ? 16 : 8;

  unsigned tiles;  // in shared memory, of the warp alone, at a multiple of the bytes of a row
  int queries[2], lane_key;
  bool exist;  // all that is read of the keys, and chunks begin with them

  // Those of the keys from `key` on, in the lane's row and the one eight rows on. Asks for tiles,
  // so that they are under way while tensor cores make the scores.
  __device__ __forceinline__ void ask(const Modifier& modifier, const AttentionPlace& place,
                                      int row, int key, int lane) {
    queries[0] = place.query(row);
    queries[1] = place.query(row + 8);
    lane_key = key + lane % 4 * 2;
    const bool may_end_inside = kHasBytes && Modifier::kReadsBytesAlone && place.kv_len % 16 == 0;
    exist = key >= 0 && (!kHasTiles || key % kKeysOfChunk == 0) &&
            (may_end_inside || key + 2 * Count <= place.kv_len);
    if (kHasTiles && !exist)
      return;
    if constexpr (kHasBytes) {
#pragma unroll
      for (int i = 0; i < Count / 16; ++i) {
        const int first = key + 64 * (i / 2) + lane % 4 * 16;
        if (first < place.kv_len) {
          modifier.template ask_for_chunks<true>(
              place_of_bytes(i, lane), kTileBytes, bytes_of_row(row + i % 2 * 8, place),
              place.batch, place.head, queries[i % 2], {first, 0}, place.q_len, place.kv_len);
        }
      }
    }
    if constexpr (kHasPairs) {
      constexpr int kRows = 32 / kChunks;  // at once
      const int chunk = lane % kChunks;
      // The same in all lanes, as the compiler then knows: registers are few.
      const int first_row = __shfl_sync(0xffffffffu, row, 0);
      const unsigned first = place_of(lane / kChunks, chunk);
#pragma unroll
      for (int i = 0; i < 16 / kRows; ++i) {
        const int tile_row = first_row + lane / kChunks + i * kRows;
        modifier.template ask_for_chunks<false>(
            (first ^ i * kRows % 8 * 16) + i * kRows * kRowBytes, kTileBytes,
            bytes_of_row(tile_row, place), place.batch, place.head, place.query(tile_row),
            {key + 8 * chunk, 0}, place.q_len, place.kv_len);
      }
    }
    if constexpr (kHasTiles)
      cp_async_commit();
  }

  __device__ __forceinline__ void modify(float (&s)[Count], const Modifier& modifier, float scale,
                                         const AttentionPlace& place, int lane) {
    if (!Modifier::kReadsByKey || exist) {
      if constexpr (kHasTiles) {
        cp_async_wait<0>();
        __syncwarp();
      }
      // What is read by key is not read twice.
      if constexpr (Modifier::kHasTanh && !Modifier::kReadsByKey) {
        if (has_near_tanh(s, modifier, scale, place))
          modify_pairs<true>(s, modifier, scale, place, lane);
        else
          modify_pairs<false>(s, modifier, scale, place, lane);
      } else {
        modify_pairs<false>(s, modifier, scale, place, lane);
      }
      if constexpr (kHasTiles)
        __syncwarp();  // all have read what is asked for again
      return;
    }
#pragma unroll
    for (int n = 0; n < Count; ++n) {
      if (n % 2 == 0)
        __syncwarp();  // so that reads of few are under way, whose addresses take registers
      const int key = min(max(lane_key + n / 4 * 8 + n % 2, 0), place.kv_len - 1);
      s[n] = modifier.score(s[n] * scale, place.batch, place.head, queries[n % 4 / 2], {key, 0},
                            place.q_len, place.kv_len);
    }
  }

 private:
  __device__ __forceinline__ static int bytes_of_row(int row, const AttentionPlace& place) {
    return row < place.q_len ? 16 : 0;
  }

  // Whether tanh of all scores of the warp is of numbers near 0.
  __device__ __forceinline__ bool has_near_tanh(const float (&s)[Count], const Modifier& modifier,
                                                float scale, const AttentionPlace& place) const {
    float most = 0;
#pragma unroll
    for (int n = 0; n < Count; ++n)
      most = modifier.most_of_tanh(most, s[n] * scale, place.batch, place.head, queries[n % 4 / 2],
                                   {lane_key, n / 4 * 8 + n % 2}, place.q_len, place.kv_len);
    return __all_sync(~0u, most < kNearTanh);
  }

  template <bool IsNear>
  __device__ __forceinline__ void modify_pairs(float (&s)[Count], const Modifier& modifier,
                                               float scale, const AttentionPlace& place,
                                               int lane) const {
    unsigned bits[Modifier::kTiles + 1][Count / 8];
    if constexpr (kHasBytes)
      read_bytes(bits, lane);
#pragma unroll
    for (int octets = 0; octets < Count / 8; ++octets) {
      unsigned words[4][Modifier::kTiles + 1];
      if constexpr (kHasTiles)
        read_tiles(words, bits, octets, lane);
      if constexpr (Modifier::kHasTanh && !IsNear)
        __syncwarp();  // so that few exponentials are under way, which take registers
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const int n = 8 * octets + 2 * pair;
        s[n] *= scale;
        s[n + 1] *= scale;
        modifier.template score_pair<kHasTiles, IsNear>(
            s[n], s[n + 1], words[pair], place.batch, place.head, queries[pair % 2],
            {lane_key, n / 4 * 8}, place.q_len, place.kv_len);
      }
    }
  }

  // Chunks change places, so that those of eight rows lie in different banks. Others of the lane
  // lie a known number of bytes away, or in known bits: an address for each would take a register.
  __device__ __forceinline__ unsigned place_of(int row, int chunk) const {
    unsigned place = tiles + row * kRowBytes + (chunk ^ row % 8) * 16;
    asm volatile("" : "+r"(place));
    return place;
  }

  // What pairs of 16 keys read: of 8 keys in both rows, then of the next 8.
  template <int Words>
  __device__ __forceinline__ void read_tiles(unsigned (&words)[4][Words],
                                             const unsigned (&bits)[Words][Count / 8], int octets,
                                             int lane) const {
#pragma unroll
    for (int tile = 0; tile < Modifier::kTiles; ++tile) {
      unsigned of_pair[4];
      if (is_of_bytes(tile)) {
#pragma unroll
        for (int pair = 0; pair < 4; ++pair)
          words[pair][tile] = bits[tile][octets] >> (pair % 2 * 16 + pair / 2 * 8);
        continue;
      }
      ldmatrix_x4(of_pair, (place_of(lane % 16, lane / 16) ^ octets * 32) + tile * kTileBytes);
#pragma unroll
      for (int pair = 0; pair < 4; ++pair)
        words[pair][tile] = of_pair[pair];
    }
  }

  __device__ static constexpr bool is_of_bytes(int tile) {
    return (Modifier::kByteTiles >> tile & 1) != 0;
  }

  // Of the keys 64 * (i / 2) + 16 * (lane % 4) and on, in the lane's row or, where i is odd, in the
  // one eight rows on.
  __device__ __forceinline__ unsigned place_of_bytes(int i, int lane) const {
    return tiles + (lane / 4 + i % 2 * 8) * 2 * Count + i / 2 * 64 + lane % 4 * 16;
  }

  // Of 16 keys, for each group of them: that of key k of the lane's pair is bit k of the first
  // eight keys in its row, bit 8 + k of the other eight, bits 16 + k and 24 + k eight rows on.
  template <int Words>
  __device__ __forceinline__ void read_bytes(unsigned (&bits)[Words][Count / 8], int lane) const {
#pragma unroll
    for (int tile = 0; tile < Modifier::kTiles; ++tile) {
#pragma unroll
      for (int block = 0; is_of_bytes(tile) && block < Count / 32; ++block) {
        const unsigned both = bits_of_chunk(place_of_bytes(2 * block, lane) + tile * kTileBytes) |
                              bits_of_chunk(place_of_bytes(2 * block + 1, lane) + tile * kTileBytes)
                                  << 16;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          bits[tile][4 * block + i] = __shfl_sync(~0u, both, i, 4) >> lane % 4 * 2;
      }
    }
  }
};

// Without tiles, of scores that are there.
template <int Count, typename Modifier>
__device__ __forceinline__ void modify_scores(float (&s)[Count], const Modifier& modifier,
                                              float scale, const AttentionPlace& place, int row,
                                              int key, int lane) {
  const int queries[2] = {place.query(row), place.query(row + 8)};
#pragma unroll
  for (int n = 0; n < Count; ++n) {
    const int exists = min(key + lane % 4 * 2 + n / 4 * 8 + n % 2, place.kv_len - 1);
    s[n] = modifier.score(s[n] * scale, place.batch, place.head, queries[n % 4 / 2], {exists, 0},
                          place.q_len, place.kv_len);
  }
}

}  // namespace stof
