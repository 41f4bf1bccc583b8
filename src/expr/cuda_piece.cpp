#include "expr/cuda_piece.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "expr/semantics.hpp"

namespace stof::expr {

namespace {

constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

}  // namespace

bool fits_int(const Interval& interval) {
  return interval.low >= kInt32Min && interval.high <= kInt32Max;
}

std::string enclosed(const Piece& piece, int least_precedence) {
  return piece.precedence < least_precedence ? "(" + piece.text + ")" : piece.text;
}

Piece literal_piece(const Interval& point) {
  Piece piece;
  piece.interval = point;
  if (point.type == ScalarType::Bool) {
    piece.text = point.is_true() ? "true" : "false";
    return piece;
  }
  piece.is_wide = !fits_int(point);
  const std::string_view suffix = piece.is_wide ? "LL" : "";
  if (point.low == kInt32Min || point.low == kIntMin) {
    // The least integer has no literal: it would be the negative of one that does not fit.
    piece.text = fmt::format("{}{} - 1", point.low + 1, suffix);
    piece.precedence = info(Op::Subtract).precedence;
  } else {
    piece.text = fmt::format("{}{}", point.low, suffix);
    piece.precedence = point.low < 0 ? kUnaryPrecedence : kPrimaryPrecedence;
  }
  return piece;
}

Piece literal_piece(double value) {
  const auto number = static_cast<float>(value);
  Piece piece;
  if (std::isnan(number)) {
    piece = call_helper("not_a_number", "", {});
  } else if (std::isinf(number)) {
    piece = call_helper("infinity", "", {});
    piece = number < 0 ? prefix("-", piece) : piece;
  } else {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    piece.text.assign(digits.data(), end);
    piece.text += piece.text.find_first_of(".e") == std::string::npos ? ".0f" : "f";
    piece.precedence = std::signbit(number) ? kUnaryPrecedence : kPrimaryPrecedence;
  }
  piece.interval = Interval::all(ScalarType::Float);
  return piece;
}

Piece infix(std::string_view op, int precedence, const Piece& a, const Piece& b) {
  // Operands of shifts and bit operations, and && in ||, get parentheses for the reader too.
  const bool is_bitwise =
      precedence == info(Op::BitOr).precedence || precedence == info(Op::BitXor).precedence ||
      precedence == info(Op::BitAnd).precedence || precedence == info(Op::ShiftLeft).precedence;
  const auto operand = [&](const Piece& part, int least_precedence) {
    const bool is_and_in_or =
        precedence == info(Op::Or).precedence && part.precedence == info(Op::And).precedence;
    return enclosed(part, is_bitwise || is_and_in_or ? kUnaryPrecedence : least_precedence);
  };
  Piece piece;
  piece.text = fmt::format("{} {} {}", operand(a, precedence), op, operand(b, precedence + 1));
  piece.precedence = precedence;
  piece.is_wide = a.is_wide || b.is_wide;
  piece.helpers = a.helpers;
  piece.helpers.insert(b.helpers.begin(), b.helpers.end());
  return piece;
}

Piece prefix(std::string_view op, const Piece& a) {
  Piece piece = a;
  const bool is_double_minus = op == "-" && a.text.starts_with('-');
  piece.text = fmt::format(
      "{}{}", op, enclosed(a, is_double_minus ? kPrimaryPrecedence + 1 : kUnaryPrecedence));
  piece.precedence = kUnaryPrecedence;
  return piece;
}

Piece call(const std::string& function, std::span<const Piece> operands) {
  Piece piece;
  piece.text = function + "(";
  for (const Piece& operand : operands) {
    piece.text += &operand == operands.data() ? "" : ", ";
    piece.text += operand.text;
    piece.helpers.insert(operand.helpers.begin(), operand.helpers.end());
  }
  piece.text += ")";
  return piece;
}

Piece call_helper(const std::string& helper, std::string_view type,
                  const std::vector<Piece>& operands) {
  const std::string arguments = type.empty() ? "" : fmt::format("<{}>", type);
  Piece piece = call("stof::" + helper + arguments, operands);
  piece.helpers.insert(helper);
  piece.is_wide = type == "long long";
  return piece;
}

Piece as_int(Piece piece) {
  if (piece.is_wide) {
    piece = prefix("(int)", piece);
    piece.is_wide = false;
  }
  return piece;
}

Piece as_wide(Piece piece) {
  if (!piece.is_wide) {
    piece = prefix("(long long)", piece);
    piece.is_wide = true;
  }
  return piece;
}

}  // namespace stof::expr
