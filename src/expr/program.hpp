#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "expr/operation.hpp"
#include "stof/expr.hpp"

namespace stof::expr {

// No program needs more slots: the operand that needs most is evaluated first, so a tree of
// kMaxNodes nodes needs fewer than 26, which is where all have four operands.
inline constexpr int kMaxSlots = 32;

// slots[destination] = op(slots[operands[0]], …). The operands are read before the destination is
// written, which may be one of them. A slot is a 64-bit word: an integer, a truth value as 0 or 1,
// or the bits of a double.
struct Instruction {
  Op op;
  ScalarType type;  // of the last operand: it tells + on floats from + on integers
  std::uint8_t destination;
  std::uint8_t operands[4];
  std::uint32_t index;  // of the constant, scalar, table or capture
};
static_assert(std::is_trivially_copyable_v<Instruction> && sizeof(Instruction) == 12);

// An expression as straight-line code, in the order of a postfix walk, to be interpreted on the CPU
// or on a GPU, over values or over intervals. There are no branches: both sides of a select are
// evaluated. Op::Hash, Draw and Keep do not occur; they are made of Mix. The result is in slot 0.
struct Program {
  std::vector<Instruction> code;
  std::vector<std::int64_t> constants;  // words
  std::vector<std::string> scalars;     // in order of name, as tables and captures are
  std::vector<ScalarType> scalar_types;
  std::vector<Table> tables;
  std::vector<Capture> captures;
  ScalarType type = ScalarType::Bool;  // of the result
  int slots = 1;                       // how many are used; at most kMaxSlots

  // Where the scalar is in `scalars`, if the program reads it.
  std::optional<int> scalar(std::string_view name) const;
};

Program compile(const Expr& expr);

}  // namespace stof::expr
