// Attention in which each query sees a run of keys that moves along with it: which scores stay, in
// the accumulator order of mma.m16n8k16.
#pragma once

#include "device/attention_mask.cuh"
#include "device/attention_softmax.cuh"

namespace stof {

// Keys from `first` to `end` - 1.
struct KeySpan {
  int first, end;
};

// Query i sees the keys from i + first to i + end - 1 that exist.
struct Band {
  int first, end;
  int keys;  // how many exist

  // Those of a lane's row, and of the one eight rows on.
  __device__ __forceinline__ KeySpan keys_of_lane(int row, int half) const {
    const int query = row + 8 * half;
    return {max(query + first, 0), min(query + end, keys)};
  }
  // Those that all of 16 rows from `row` on see.
  __device__ __forceinline__ KeySpan keys_of_all(int row) const {
    return {max(row + 15 + first, 0), min(row + end, keys)};
  }
};

// How many of a lane's columns, two of every eight, lie before a column, which may be any.
__device__ __forceinline__ int lane_columns_before(int column, int lane) {
  const int rest = column - lane % 4 * 2;
  return (rest >> 3) * 2 + min(rest & 7, 2);
}

// Which of a lane's columns from a key on its row, and the one eight rows on, see: those from
// number `first` to `end` - 1.
struct SeenColumns {
  int first[2], end[2];

  template <typename Seen>
  __device__ __forceinline__ SeenColumns(const Seen& seen, int row, int key, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const KeySpan keys = seen.keys_of_lane(row, half);
      first[half] = lane_columns_before(keys.first - key, lane);
      end[half] = lane_columns_before(keys.end - key, lane);
    }
  }

  // A bit for each of the 16 columns from number 16 * `block` on.
  __device__ __forceinline__ unsigned bits(int half, int block) const {
    return low_bits(max(end[half] - 16 * block, 0)) & ~low_bits(max(first[half] - 16 * block, 0));
  }
};

// Hides what is not seen of the lane's scores from `first` on, by a bit for each of 16 columns.
template <int Count>
__device__ __forceinline__ void mask_columns(float (&s)[Count], unsigned bits, int half,
                                             int first = 0) {
#pragma unroll
  for (int i = 0; i < 16 && first + 2 * i < Count; ++i)
    mask_by_bit(s[first + i / 2 * 4 + half * 2 + i % 2], bits, 1u << i);
}

// Hides what is not seen among the scores of 16 rows from `row` on with the keys from `key` on. A
// warp looks only at those 64 keys in which one of its rows ends.
template <int Count, typename Seen>
__device__ __forceinline__ void mask_band(float (&s)[Count], const SeenColumns& columns,
                                          const Seen& seen, int row, int key) {
  const KeySpan all = seen.keys_of_all(row);
#pragma unroll
  for (int block = 0; block < (Count + 31) / 32; ++block) {
    if (key + 64 * block >= all.first && key + min(64 * block + 64, 2 * Count) <= all.end)
      continue;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      mask_columns(s, columns.bits(half, block), half, 32 * block);
  }
}

// The scores of 16 rows with keys 16 * number to 16 * number + 15.
template <int Count>
__device__ __forceinline__ float (&piece_of(float (&s)[1][Count], int number))[8] {
  return reinterpret_cast<float(&)[8]>(s[0][8 * number]);
}

// Pieces of 16 keys that the rows of a warp see.
struct SeenPieces {
  int first, end;
};

// Scores of pieces First to End - 1 of all that a query tile sees become probabilities, those of
// pieces that the warp does not see 0. Looked at are the first three and the last three alone:
// where keys move along with 64 queries, all four warps see those in between.
template <int First, int End, typename T, bool AddsUp, typename Rows, int Count>
__device__ __forceinline__ void make_probabilities(float (&s)[1][Count],
                                                   unsigned (&p)[Count / 8][4], Rows& rows,
                                                   const SeenPieces& seen, float scale_log2) {
#pragma unroll
  for (int i = First; i < End; ++i) {
#pragma unroll
    for (int n = 0; n < 4; ++n)
      p[i][n] = 0;
    if ((i >= 3 || i >= seen.first) && (i < Count / 8 - 3 || i < seen.end)) {
      float(&x)[8] = piece_of(s, i);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        x[n] = exp2_approx(fmaf(x[n], scale_log2, -rows.base(0, n % 4 / 2)));
        if (AddsUp)
          rows.sum[0][n % 4 / 2] += x[n];
      }
#pragma unroll
      for (int n = 0; n < 4; ++n)
        p[i][n] = pack2<T>(x[2 * n], x[2 * n + 1]);
    }
  }
}

}  // namespace stof
