#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "expr/interval.hpp"
#include "expr/operation.hpp"

namespace stof::expr {

// Part of a kernel's text, and what is known of its value there.
struct Piece {
  std::string text;
  int precedence = kPrimaryPrecedence;
  Interval interval;     // of integers and truth values; that of floats is in double, and not used
  bool is_wide = false;  // an integer of type long long
  std::set<std::string> helpers;
};

// Whether every integer of the interval is an int.
bool fits_int(const Interval& interval);

// In parentheses where the precedence is below the least.
std::string enclosed(const Piece& piece, int least_precedence);

Piece literal_piece(const Interval& point);  // an integer or a truth value
Piece literal_piece(double value);

// a op b, and op a.
Piece infix(std::string_view op, int precedence, const Piece& a, const Piece& b);
Piece prefix(std::string_view op, const Piece& a);
// function(a, b, …), with a name that C++ or the caller has.
Piece call(const std::string& function, std::span<const Piece> operands);
// stof::helper(a, b, …), or stof::helper<type>(a, b, …).
Piece call_helper(const std::string& helper, std::string_view type,
                  const std::vector<Piece>& operands);

Piece as_int(Piece piece);   // of type int; its value fits
Piece as_wide(Piece piece);  // of type long long

// An operation of the language on integers, all operands of type Int; the result has the interval.
Piece integer_operation(Op op, std::span<const Piece> operands, const Interval& result);

}  // namespace stof::expr
