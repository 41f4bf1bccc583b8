#pragma once

#include <cstdint>
#include <vector>

#include "mask/layout.hpp"
#include "mask/rows.hpp"

namespace stof::mask {

constexpr std::int64_t kWindow = 16;  // query rows
constexpr std::int64_t kOctet = 8;    // columns
constexpr std::int64_t kGroup = 8;    // octets
constexpr std::int64_t kGroupWords = 64;

// The keys that any row of a window of 16 query rows sees, its columns, for kernels that read keys
// and values from stages of `stage_keys` of them in shared memory.
//
// List window * stages + stage, with windows counted as the tiles of a layout and stages from key 0
// on, is the octets octet_ptr[list], …, octet_ptr[list + 1] - 1, each of eight columns. Octets are
// packed in groups of eight, the last two of zeros, for those who read ahead. Of octet i of a group
//   bit 4 i + e of word lane is whether row lane / 4 + 8 (e / 2) sees column 2 (lane % 4) + e % 2,
//     in the order of an accumulator of mma m16n8k16;
//   the 16 bits of column c are half c % 2 of word 32 + 4 i + c / 2, the low half first. They say
//     where its key lies in a panel of 128 bytes a key: 128 n + 16 (n % 8) for key n of the stage,
//     of which chunk c of 16 bytes is at that ^ 16 c.
// So a chunk of the keys of an octet comes from all banks if their n % 8 differ, and keys are dealt
// to octets so that they do as far as can be. Columns that fill the last octets up are seen by no
// row.
struct WindowColumns {
  std::vector<std::int32_t> octet_ptr;
  std::vector<std::uint32_t> words;
};

// How many columns windows have, the mean one and the one that has the most.
struct WindowCounts {
  double mean = 0;
  std::int64_t most = 0;
  double span =
      0;  // keys from the first tile of 64 x 64 of a window's rows to the last, in the mean

  friend bool operator==(const WindowCounts&, const WindowCounts&) = default;
};

// From tiles and bitmaps alone, without lists of keys.
WindowCounts count_window_columns(const MaskLayout& layout);

// `rows` are those of `planes` planes of q_len rows each. stage_keys is at least 8, at most 512.
WindowColumns window_columns(const KeyRows& rows, std::int64_t planes, std::int64_t q_len,
                             std::int64_t kv_len, std::int64_t stage_keys);

}  // namespace stof::mask
