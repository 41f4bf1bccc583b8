// Which C++ an operation on integers is, given what is proven of its operands and its result. Where
// all of them are ints it is done in 32 bits, else in 64, and by a helper where 64 may not do.
#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "base/check.hpp"
#include "expr/cuda_piece.hpp"
#include "expr/semantics.hpp"

namespace stof::expr {

namespace {

struct Operation {
  Op op;
  std::span<const Piece> operands;
  Interval result;
  bool is_narrow;  // operands and result are ints

  const Piece& a() const { return operands[0]; }
  const Piece& b() const { return operands[1]; }
  std::string_view type() const { return is_narrow ? "int" : "long long"; }

  // The operand in the type that the operation is done in.
  Piece typed(const Piece& piece) const { return is_narrow ? as_int(piece) : as_wide(piece); }

  // Whether no result is out of the 64 bits: bounds that are may be anything.
  bool is_exact() const { return is_narrow || result != Interval::all(ScalarType::Int); }

  Piece plain(std::string_view text, Op like, const Piece& left, const Piece& right) const {
    return infix(text, info(like).precedence, typed(left), right);
  }

  Piece helper(const std::string& name) const {
    return operands.size() == 1 ? call_helper(name, type(), {a()})
                                : call_helper(name, type(), {a(), b()});
  }

  // A helper that works in 64 bits only.
  Piece wide_helper(const std::string& name) const {
    Piece piece =
        operands.size() == 1 ? call_helper(name, "", {a()}) : call_helper(name, "", {a(), b()});
    piece.is_wide = true;
    return piece;
  }
};

Piece literal_of(std::int64_t value) {
  return literal_piece(Interval::integers(value, value));
}

// n, if the operand is 2^n and nothing else.
std::optional<int> power_of_two(const Interval& interval) {
  if (interval.is_point() && interval.low > 0 && std::has_single_bit(bits_of(interval.low))) {
    return std::countr_zero(bits_of(interval.low));
  }
  return std::nullopt;
}

Piece arithmetic(const Operation& operation, const std::string& wrapping) {
  if (!operation.is_exact()) {
    return operation.wide_helper(wrapping);
  }
  // An int as the right operand of a long long is one too.
  const Piece right = operation.is_narrow ? as_int(operation.b()) : operation.b();
  return operation.plain(info(operation.op).text, operation.op, operation.a(), right);
}

Piece division(const Operation& operation, const std::string& helper, std::string_view shifted) {
  const Interval& a = operation.a().interval;
  const Interval& b = operation.b().interval;
  if (const std::optional<int> exponent = power_of_two(b)) {
    const bool is_modulo = operation.op == Op::Modulo;
    const Piece right = is_modulo ? literal_of(b.low - 1) : literal_of(*exponent);
    const Op like = is_modulo ? Op::BitAnd : Op::ShiftRight;
    return !is_modulo && *exponent == 0 ? operation.a()
                                        : operation.plain(shifted, like, operation.a(), right);
  }
  if (a.low >= 0 && b.low > 0) {
    const Piece right = operation.is_narrow ? as_int(operation.b()) : operation.b();
    return operation.plain(info(operation.op).text, operation.op, operation.a(), right);
  }
  const bool is_sound = b.low > 0 || b.high < -1;
  return operation.helper(is_sound ? helper + "_unchecked" : helper);
}

Piece ceil_division(const Operation& operation) {
  const Interval& a = operation.a().interval;
  const Interval& b = operation.b().interval;
  std::int64_t last = 0;
  if (!b.is_point() || b.low <= 0 || __builtin_add_overflow(a.high, b.low - 1, &last)) {
    return operation.helper("ceil_div");
  }
  const std::optional<int> exponent = power_of_two(b);
  const Interval raised = Interval::integers(a.low + (b.low - 1), last);
  const bool fits = !operation.is_narrow || fits_int(raised);
  if (!fits || !(exponent || a.low >= 0)) {
    return operation.helper("ceil_div");
  }
  const Piece sum = operation.plain("+", Op::Add, operation.a(), literal_of(b.low - 1));
  return exponent ? operation.plain(">>", Op::ShiftRight, sum, literal_of(*exponent))
                  : operation.plain("/", Op::Divide, sum, literal_of(b.low));
}

Piece shift(const Operation& operation, std::string_view plain, const std::string& helper) {
  const Interval& a = operation.a().interval;
  const Interval& count = operation.b().interval;
  const bool is_count_sound = count.low >= 0 && count.high < (operation.is_narrow ? 32 : 64);
  const bool is_value_sound =
      operation.op == Op::ShiftRight || (a.low >= 0 && operation.is_exact());
  if (!is_count_sound || !is_value_sound) {
    return operation.wide_helper(helper);
  }
  return operation.plain(plain, Op::ShiftRight, operation.a(), as_int(operation.b()));
}

Piece absolute(const Operation& operation) {
  if (operation.a().interval.low >= 0) {
    return operation.a();
  }
  return operation.is_exact() ? operation.helper("abs_of") : operation.wide_helper("wrap_abs");
}

Piece negation(const Operation& operation) {
  return operation.is_exact() ? prefix("-", operation.typed(operation.a()))
                              : operation.wide_helper("wrap_neg");
}

Piece emit(const Operation& operation) {
  switch (operation.op) {
    case Op::Negate:
      return negation(operation);
    case Op::BitNot:
      return prefix("~", operation.typed(operation.a()));
    case Op::Abs:
      return absolute(operation);
    case Op::Add:
      return arithmetic(operation, "wrap_add");
    case Op::Subtract:
      return arithmetic(operation, "wrap_sub");
    case Op::Multiply:
      return arithmetic(operation, "wrap_mul");
    case Op::Divide:
      return division(operation, "floor_div", ">>");
    case Op::Modulo:
      return division(operation, "floor_mod", "&");
    case Op::CeilDiv:
      return ceil_division(operation);
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
      return infix(info(operation.op).text, info(operation.op).precedence, operation.a(),
                   operation.b());
    case Op::ShiftLeft:
      return shift(operation, "<<", "shift_left");
    case Op::ShiftRight:
      return shift(operation, ">>", "shift_right");
    case Op::ShiftRightLogical:
      return shift(operation, ">>", "shift_right_logical");
    case Op::Min:
      return operation.helper("min_of");
    case Op::Max:
      return operation.helper("max_of");
    default:
      break;
  }
  STOF_CHECK(false) << "operation " << info(operation.op).text << " on integers";
  return {};
}

}  // namespace

Piece integer_operation(Op op, std::span<const Piece> operands, const Interval& result) {
  const bool is_narrow = fits_int(result) && std::ranges::all_of(operands, [](const Piece& piece) {
                           return fits_int(piece.interval);
                         });
  Piece piece = emit({op, operands, result, is_narrow});
  piece.interval = result;
  return piece;
}

}  // namespace stof::expr
