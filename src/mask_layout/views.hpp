#pragma once

#include <cstdint>

#include "expr/operation.hpp"
#include "stof/dtype.hpp"
#include "stof/expr.hpp"

// What kernels are handed: plain structs of numbers and device pointers.
namespace stof::mask_layout {

// The extents of a mask::MaskLayout.
struct Grid {
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t mask_batch = 1;
  std::int64_t mask_heads = 1;
  std::int64_t tile_rows = 0;
  std::int64_t tile_cols = 0;

  constexpr std::int64_t planes() const { return mask_batch * mask_heads; }
  constexpr std::int64_t row_count() const { return planes() * tile_rows; }
  constexpr std::int64_t tile_count() const { return row_count() * tile_cols; }
  constexpr std::int64_t query_rows() const { return planes() * q_len; }
};

enum class Scalar : std::uint8_t { Batch, Head, Query, Key, QueryLength, KeyLength };

// Bits of Step::flags.
inline constexpr int kIsFloat = 1;  // the last operand is
inline constexpr int kIsTruth = 2;  // the last operand is, or the leaf
inline constexpr int kResultVaries = 4;
inline constexpr int kIsForwarded = 8;  // the next step alone reads the result
constexpr int operand_varies(int operand) {
  return 16 << operand;
}

// Values of Step::operands: a slot, of which those from kRowSlot on hold what depends on the row
// alone, or one of these.
inline constexpr int kRowSlot = 32;
inline constexpr int kMostRowSlots = 16;  // of all expressions of a mask
inline constexpr int kPrevious = 64;      // the result of the step before
inline constexpr int kWord = 65;          // Step::word
inline constexpr int kScalar = 66;        // and those behind it: a Scalar

inline constexpr int kKeyOperand = kScalar + static_cast<int>(Scalar::Key);

// An expr::Instruction that takes constants and scalars as operands. What varies differs along the
// keys of a row. Op::Keep stands for mix(a ^ b) >>> kKeepShift < word, which masks that draw spend
// most of their time in; word is from 0 to 2^24.
struct alignas(16) Step {
  std::uint8_t op = 0;  // expr::Op
  std::uint8_t destination = 0;
  std::uint8_t flags = 0;
  std::uint8_t operands[4] = {kWord, kWord, kWord, kWord};
  std::int64_t word = 0;  // the constant, the Scalar, or the number of the table or capture
};

// What may be done to a line at each key by itself, with Step::word where it takes a second
// operand.
constexpr bool is_curve(expr::Op op) {
  return op == expr::Op::Table || op == expr::Op::Modulo || op == expr::Op::Divide ||
         op == expr::Op::BitAnd || op == expr::Op::ShiftRight || op == expr::Op::Abs;
}

// An expr::TableData.
struct TableView {
  const std::int64_t* entries = nullptr;
  const std::int64_t* block_low = nullptr;
  const std::int64_t* block_high = nullptr;
  std::int64_t size = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool is_float = false;
};

struct CaptureView {
  const void* data = nullptr;
  std::int64_t shape[4] = {};
  std::int64_t strides[4] = {};  // in elements
  int rank = 0;
  DType dtype = DType::Float32;
};

enum class PartKind : std::uint8_t {
  Expression,
  Bits,        // words of BitTensor
  Bytes,       // of [batch, heads, rows, columns]
  Blocks,      // bits of blocks
  Csr,         // columns ascend within a row
  KeyLengths,  // keys below an int32 a batch element
  Documents,   // int32 offsets
  Tiles,       // bitmaps of 64 x 64 tiles by inner tiles, which were worked out ahead
  And,
  Or,
  Not
};

// One node of a mask; operands come before what uses them, as on a stack.
struct Part {
  PartKind kind = PartKind::Expression;
  std::int32_t first_step = 0;  // of an expression: those of a row, then those of its keys
  std::int32_t first_key_step = 0;
  std::int32_t end_step = 0;
  const void* data = nullptr;             // columns of CSR, else what the kind says
  const std::int32_t* row_ptr = nullptr;  // of tiles: their codes, as mask_layout::Layout has them
  std::int64_t batch = 1;                 // of data, 1 where shared
  std::int64_t heads = 1;
  std::int64_t rows = 0;     // of tiles, for tiles
  std::int64_t columns = 0;  // the number of offsets, for documents
  std::int64_t block_size = 1;
};

inline constexpr int kMaxStack = 16;  // of parts
inline constexpr int kMaxInputs = 4;  // parts that all must hold besides, and one of tiles
inline constexpr int kMaxCaptures = 16;

// Inputs and captures may lie elsewhere on each run: they come with the arguments of a kernel.
struct MaskView {
  const Part* parts = nullptr;
  const Step* steps = nullptr;
  const TableView* tables = nullptr;
  std::int32_t part_count = 0;
  std::int32_t step_count = 0;
  std::int32_t slots = 0;      // most of any expression
  std::int32_t row_slots = 0;  // of all expressions
  std::int32_t input_count = 0;
  // The only part that draws, and does nothing else with the keys of a row; -1 where there is none,
  // or are too few tiles for a kernel of their own.
  std::int32_t drawn_part = -1;
  // What each query row draws with, which settle_tiles writes, and the word of the draw's Op::Keep.
  std::int64_t* row_numbers = nullptr;
  std::uint32_t drawn_limit = 0;
  bool goes_by_rows = true;  // all expressions, see LoweredProgram
  bool is_staged = false;    // blocks read what their tiles need of inputs before they evaluate one
  Part inputs[kMaxInputs + 1] = {};
  CaptureView captures[kMaxCaptures] = {};

  // Parts and those inputs that are evaluated as if they were.
  constexpr std::int32_t evaluated_count() const {
    return is_staged ? part_count : part_count + input_count;
  }
};

}  // namespace stof::mask_layout
