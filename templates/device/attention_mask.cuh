// Masks of attention, one bit a score: bit 4 n + e of a word belongs to element [4 n + e] of a 16 x
// 64 accumulator.
#pragma once

namespace stof {

enum class MaskClass { None, IntervalRows, InlinePredicate, Bitmap };

// States of a 64 x 64 tile; others are numbers of bitmaps.
constexpr int kTileIsFull = -1;
constexpr int kTileIsEmpty = -2;
constexpr int kTileIsCut = -3;  // full, but keys of it do not exist

// The arrays of a mask whose names in a contract begin with "mask.".
struct MaskArrays {
  const int* row_ptr;
  const int* tile_col;
  const int* tile_bitmap;
  const unsigned* bitmaps;
  const int* row_first;
  const int* row_end;
};

// x stays where the bit is set. Volatile and bit by bit in ascending order, so that the compiler
// moves eight bits to predicates at a time; the plain expression costs two instructions a score.
__device__ __forceinline__ void mask_by_bit(float& x, unsigned word, unsigned bit) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 t;\nand.b32 t, %1, %2;\nsetp.ne.b32 p, t, 0;\nselp.f32 %0, %0, "
      "0fFF800000, p;\n}"
      : "+f"(x)
      : "r"(word), "r"(bit));
}

template <int Count>
__device__ __forceinline__ void mask_scores(float (&s)[Count], unsigned word) {
#pragma unroll
  for (int i = 0; i < Count; ++i)
    mask_by_bit(s[i], word, 1u << i);
}

// The lowest `count` bits, up to 32 of them.
__device__ __forceinline__ unsigned low_bits(int count) {
  unsigned bits;
  asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(bits) : "r"(count));
  return bits;
}

// The bits, in both rows, of a lane's columns below `end`, which may be any number.
__device__ __forceinline__ unsigned columns_below(int end, int lane) {
  const int columns = min(max(end, 0), 64);
  const int shift = columns / 8 * 4;
  // In the 8-column block that `end` cuts: bits 0 and 1 for the first row, 2 and 3 for the second.
  const unsigned cut = low_bits(min(max(columns % 8 - lane % 4 * 2, 0), 2)) * 5;
  return low_bits(shift) | cut << shift % 32;
}

constexpr unsigned kFirstRowBits = 0x33333333u;

// Number of the plane of a mask that has so many for batch elements and heads, 1 where they share.
__device__ __forceinline__ int plane_of_mask(int batch, int head, int mask_batch, int mask_heads) {
  return (mask_batch == 1 ? 0 : batch) * mask_heads + (mask_heads == 1 ? 0 : head);
}

// Where a CTA stands, as mask and score expressions see it, and the plane of the mask that it
// reads.
struct AttentionPlace {
  int batch, head, q_len, kv_len, plane;

  // Rows past the end stand for the last one.
  __device__ __forceinline__ int query(int row) const { return min(row, q_len - 1); }
};

// The part of a word that comes from memory; asked for early, since it has a way to go. `slot` is
// 32 * (row block within the 64 rows) + lane.
template <MaskClass Class>
__device__ __forceinline__ unsigned stored_word(const MaskArrays& mask, int status, int slot) {
  if (Class != MaskClass::Bitmap || status < 0)
    return 0;
  return __ldg(mask.bitmaps + (static_cast<unsigned>(status) * 128 + slot));
}

// The keys [first, end) that a lane's row and the one eight rows on see; none for a row that does
// not exist.
struct RowBounds {
  int first[2], end[2];
};

template <MaskClass Class>
__device__ __forceinline__ RowBounds row_bounds(const MaskArrays& mask, const AttentionPlace& place,
                                                int row) {
  RowBounds bounds = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (Class == MaskClass::IntervalRows && row + 8 * half < place.q_len) {
      const int index = place.plane * place.q_len + row + 8 * half;
      bounds.first[half] = __ldg(mask.row_first + index);
      bounds.end[half] = __ldg(mask.row_end + index);
    }
  }
  return bounds;
}

__device__ __forceinline__ unsigned interval_word(const RowBounds& bounds, int key, int lane) {
  unsigned words[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    words[half] = columns_below(bounds.end[half] - key, lane) &
                  ~columns_below(bounds.first[half] - key, lane);
  }
  return (words[0] & kFirstRowBits) | (words[1] & ~kFirstRowBits);
}

template <typename Modifier>
__device__ __forceinline__ unsigned predicate_word(const Modifier& modifier,
                                                   const AttentionPlace& place, int row, int key,
                                                   int keys) {
  unsigned word = 0;
#pragma unroll 1
  for (int n = 0; n < keys / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool is_seen = modifier.is_seen(place.batch, place.head, place.query(row + e / 2 * 8),
                                            key + 8 * n + e % 2, place.q_len, place.kv_len);
      word |= static_cast<unsigned>(is_seen) << (4 * n + e);
    }
  }
  return word;
}

// The bits of `Keys` keys from `key` on, for rows `row` and `row` + 8, whose bounds `bounds()`
// gives. Keys from `key_end` on do not exist.
template <MaskClass Class, int Keys, typename Bounds, typename Modifier>
__device__ __forceinline__ unsigned mask_word(unsigned stored, int status, const Bounds& bounds,
                                              const Modifier& modifier, const AttentionPlace& place,
                                              int row, int key, int key_end, int lane) {
  if (status == kTileIsFull && key + Keys <= key_end)
    return 0xffffffffu;
  unsigned word = status == kTileIsEmpty ? 0 : 0xffffffffu;
  if (Class == MaskClass::Bitmap && status >= 0)
    word = Keys == 64 ? stored : stored >> (key % 64 / 2);
  if (Class == MaskClass::IntervalRows && status >= 0) {
    word = interval_word(bounds(), key, lane);
  }
  if (Class == MaskClass::InlinePredicate && status >= 0) {
    word = predicate_word(modifier, place, row, key + lane % 4 * 2, Keys);
  }
  return key + Keys <= key_end ? word : word & columns_below(key_end - key, lane);
}

}  // namespace stof
