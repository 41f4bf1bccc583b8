#pragma once

#include <cstdint>
#include <string_view>

namespace stof::expr {

// What a node computes. The order is that of the table in operation.cpp.
enum class Op : std::uint8_t {
  Constant,
  Scalar,
  Table,
  Capture,
  Negate,
  Not,
  BitNot,
  Add,
  Subtract,
  Multiply,
  Divide,
  Modulo,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  And,
  Or,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  ShiftRightLogical,
  Select,
  Min,
  Max,
  Abs,
  CeilDiv,
  ToFloat,
  ToInt,
  Exp,
  Log,
  Sqrt,
  Tanh,
  Hash,
  Draw,
  Keep,
  Mix,  // one round of splitmix64; only in programs, where Hash, Draw and Keep are made of it
};

// Which operands an operation takes, and what comes out.
enum class Signature : std::uint8_t {
  Leaf,
  Number,          // one number; the same type
  Integer,         // one integer, or one truth value where the operation has a logical twin
  Truth,           // one truth value
  Float,           // one number, as a float
  Convert,         // one number; the type that the operation names
  Numbers,         // two numbers, floats where one is; the same type
  Integers,        // two integers; an integer
  Bits,            // two integers, or two truth values for the logical twin
  Truths,          // two truth values
  Order,           // two numbers; a truth value
  Equality,        // two numbers or two truth values; a truth value
  Choice,          // a truth value, then two numbers or two truth values
  HashedIntegers,  // integers only; an integer
  HashedFraction,  // three integers and a literal float; a truth value
};

struct OpInfo {
  std::string_view text;  // the operator, or the name of the function
  int precedence;         // of C: 1 is ?:, 12 unary, 13 a primary expression
  int arity;              // 0 for leaves and for those that index
  Signature signature;
};

inline constexpr int kTernaryPrecedence = 1;
inline constexpr int kUnaryPrecedence = 12;
inline constexpr int kPrimaryPrecedence = 13;

const OpInfo& info(Op op);

// Between its operands: a + b.
inline bool is_infix(Op op) {
  return info(op).arity == 2 && info(op).precedence < kUnaryPrecedence;
}

}  // namespace stof::expr
