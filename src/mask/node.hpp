#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "mask/bits.hpp"
#include "stof/mask.hpp"

namespace stof::mask {

// Lengths, counts and offsets that a mask is given stay within this, so that positions, their sums
// and their differences fit 32 bits.
inline constexpr std::int64_t kMaxLength = (std::int64_t{1} << 30) - 1;
// Of combinations with data, where a mask that occurs twice counts twice: so walking them by
// recursion and writing them out are safe.
inline constexpr int kMaxDepth = 256;
inline constexpr int kMaxParts = 4096;
// How the names of tables begin that ready-made masks make of offsets and lengths.
inline constexpr std::string_view kDocumentTable = "documents";
inline constexpr std::string_view kLengthTable = "kv_lengths";

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

// What data says of the attention that it is for.
struct DataExtent {
  std::int64_t batch = 1;  // 1 where shared
  std::int64_t heads = 1;
  std::optional<std::pair<std::int64_t, std::int64_t>> lengths;  // q_len, kv_len
};

// The tree behind a Mask, with what is worked out once when it is made.
struct Node {
  std::variant<Expr, DenseData, BlockData, CsrData, Combination> form;
  std::string digest = {};
  bool uses_batch = false;
  bool uses_head = false;
  bool has_captures = false;
  DataExtent data = {};
  int depth = 1;  // of combinations
  int parts = 1;
};

// Throw GraphError: a predicate that is none, blocks that do not tile the lengths, operands of
// other lengths. All else about data is checked where it comes in.
Mask make_mask(Expr predicate);
Mask make_mask(DenseData data);
Mask make_mask(BlockData data);
Mask make_mask(CsrData data);
Mask make_mask(Combination combination);

std::string text_of(const Node& node);

}  // namespace stof::mask
