#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mask/bits.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

// Whole numbers that a mask is given (lengths, counts, offsets) stay below this, so that sums and
// differences of positions fit 32 bits.
inline constexpr std::int64_t kMaxLength = (std::int64_t{1} << 30) - 1;

struct DenseData {
  BitTensor keep;
};

struct BlockData {
  BitTensor keep;  // one bit a block
  std::int64_t block_size = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
};

struct CsrData {
  std::vector<std::int32_t> row_ptr;  // q_len + 1
  std::vector<std::int32_t> col_idx;  // ascending within a row
  std::int64_t kv_len = 0;
};

enum class Operation : std::uint8_t { And, Or, Not };

// At least one operand holds data: expressions alone fold into one.
struct Combination {
  Operation operation = Operation::And;
  std::vector<Mask> operands;  // one for Not, else two
};

// The tree behind a Mask, with what is worked out once when it is made.
struct Node {
  std::variant<Expr, DenseData, BlockData, CsrData, Combination> form;

  std::string digest;
  std::string text;
  bool uses_batch = false;
  bool uses_head = false;
  bool has_captures = false;
  std::optional<std::pair<std::int64_t, std::int64_t>> lengths;
  int depth = 1;  // of combinations
};

Mask make_mask(Expr predicate);
Mask make_mask(DenseData data);
Mask make_mask(BlockData data);
Mask make_mask(CsrData data);
Mask make_mask(Combination combination);

}  // namespace stof::mask
