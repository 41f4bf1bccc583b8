#pragma once

#include <cstdint>
#include <string>

#include "mask/features.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

// What plans and tuning know of a mask: the class, the form of its expression without the literals
// and the data, and features in coarse steps. Masks of one signature share plans.
struct MaskSignature {
  MaskClass mask_class = MaskClass::None;
  bool per_batch = false;
  bool per_head = false;
  int q_len = 0;  // the least n with length <= 2^n
  int kv_len = 0;
  // Steps (see step_of): of the 64 x 64 tiles of a plane, and of the keys that rows see.
  int full_tiles = 0;
  int part_tiles = 0;
  int longest_tile_row = 0;
  int min_keys = 0;
  int mean_keys = 0;
  int max_keys = 0;
  // Of an expression that of expr::skeleton, operators before their operands, t0, c1, t2, …
  // for tables and captures in the order of first use: "&&(<=(k_pos, q_pos), <(-(q_pos, k_pos),
  // arg0))". "dense", "csr" and "blocks64" for data. The digest of that where it is longer than 512
  // characters; "true" for MaskClass::None.
  std::string skeleton;

  // One line, for ever the same for the same signature.
  std::string text() const;
  // The XXH3-128 of text().
  std::string digest() const;

  friend bool operator==(const MaskSignature&, const MaskSignature&) = default;
};

// A scale of four steps an octave, exact on every machine: 0 for 0, else 1 + 4 floor(log2 n) + the
// two bits below the leading one.
int step_of(std::int64_t n);

MaskSignature signature_of(const Mask& mask, const MaskFeatures& features);

}  // namespace stof::mask
