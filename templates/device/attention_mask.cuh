// Masks of attention, one bit a score: bit 4 n + e of a word belongs to element [4 n + e] of a 16 x 64 accumulator.
#pragma once

namespace stof {

enum class MaskClass { None, IntervalRows, InlinePredicate, Bitmap };

// The state of a 64 x 64 tile is the number of its bitmap, -1 if all of it is seen, or this.
constexpr int kTileIsEmpty = -2;

// The arrays of a mask whose names in a contract begin with "mask.".
struct MaskArrays {
  const int* row_ptr;
  const int* tile_col;
  const int* tile_bitmap;
  const unsigned* bitmaps;
  const int* row_first;
  const int* row_end;
};

// x stays where the bit is set. Volatile and bit by bit in ascending order, so that the compiler moves eight bits to
// predicates at a time; the plain expression costs two instructions a score.
__device__ __forceinline__ void mask_by_bit(float& x, unsigned word, unsigned bit) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 t;\nand.b32 t, %1, %2;\nsetp.ne.b32 p, t, 0;\nselp.f32 %0, %0, 0fFF800000, p;\n}"
      : "+f"(x)
      : "r"(word), "r"(bit));
}

template <int Count>
__device__ __forceinline__ void mask_scores(float (&s)[Count], unsigned word) {
#pragma unroll
  for (int i = 0; i < Count; ++i) mask_by_bit(s[i], word, 1u << i);
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

// What a lane needs to know of the two rows of a row block.
struct MaskRowPair {
  int query[2];
  int first[2], end[2];  // class IntervalRows: the keys that each row sees
};

// Where a CTA stands, as mask and score expressions see it.
struct AttentionPlace {
  int batch, head, q_len, kv_len;
};

template <MaskClass Class>
__device__ __forceinline__ MaskRowPair load_row_pair(const MaskArrays& mask, int plane, int query, int q_len) {
  MaskRowPair rows = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows.query[half] = min(query + 8 * half, q_len - 1);
    if constexpr (Class == MaskClass::IntervalRows) {
      const long long row = static_cast<long long>(plane) * q_len + rows.query[half];
      rows.first[half] = __ldg(mask.row_first + row);
      rows.end[half] = __ldg(mask.row_end + row);
    }
  }
  return rows;
}

// The part of a word that comes from memory; asked for early, since it has a way to go. `slot` is 32 * (row block within
// the 64 rows) + lane.
template <MaskClass Class>
__device__ __forceinline__ unsigned stored_word(const MaskArrays& mask, int status, int slot) {
  if (Class == MaskClass::Bitmap && status >= 0) {
    return __ldg(mask.bitmaps + static_cast<long long>(status) * 128 + slot);
  }
  return status == kTileIsEmpty ? 0 : 0xffffffffu;
}

template <typename Modifier>
__device__ __forceinline__ unsigned predicate_word(const Modifier& modifier, const AttentionPlace& place,
                                                   const MaskRowPair& rows, int key, int keys) {
  unsigned word = 0;
#pragma unroll 1
  for (int n = 0; n < keys / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const bool is_seen = modifier.is_seen(place.batch, place.head, rows.query[e / 2], key + 8 * n + e % 2,
                                            place.q_len, place.kv_len);
      word |= static_cast<unsigned>(is_seen) << (4 * n + e);
    }
  }
  return word;
}

// The bits of `Keys` keys from `key` on, of a part or ragged tile. Keys from `key_end` on do not exist.
template <MaskClass Class, int Keys, typename Modifier>
__device__ __forceinline__ unsigned mask_word(unsigned stored, int status, const Modifier& modifier,
                                              const AttentionPlace& place, const MaskRowPair& rows, int key,
                                              int key_end, int lane) {
  unsigned word = Class == MaskClass::Bitmap && status >= 0 ? stored >> (key % 64 / 2) : stored;
  if (Class == MaskClass::IntervalRows && status >= 0) {
    const unsigned first = columns_below(rows.end[0] - key, lane) & ~columns_below(rows.first[0] - key, lane);
    const unsigned second = columns_below(rows.end[1] - key, lane) & ~columns_below(rows.first[1] - key, lane);
    word = (first & kFirstRowBits) | (second & ~kFirstRowBits);
  }
  if (Class == MaskClass::InlinePredicate && status >= 0) {
    word = predicate_word(modifier, place, rows, key + lane % 4 * 2, Keys);
  }
  return word & columns_below(key_end - key, lane);
}

}  // namespace stof
