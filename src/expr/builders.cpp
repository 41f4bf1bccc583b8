// The operators and functions of stof/expr.hpp, each one operation of the language.
#include "expr/node.hpp"

namespace stof {

using expr::make;
using expr::Op;

// clang-format off
Expr operator+(const Expr& a, const Expr& b) { return make(Op::Add, {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return make(Op::Subtract, {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return make(Op::Multiply, {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return make(Op::Divide, {a, b}); }
Expr operator%(const Expr& a, const Expr& b) { return make(Op::Modulo, {a, b}); }
Expr operator-(const Expr& a) { return make(Op::Negate, {a}); }

Expr operator==(const Expr& a, const Expr& b) { return make(Op::Equal, {a, b}); }
Expr operator!=(const Expr& a, const Expr& b) { return make(Op::NotEqual, {a, b}); }
Expr operator<(const Expr& a, const Expr& b) { return make(Op::Less, {a, b}); }
Expr operator<=(const Expr& a, const Expr& b) { return make(Op::LessEqual, {a, b}); }
Expr operator>(const Expr& a, const Expr& b) { return make(Op::Greater, {a, b}); }
Expr operator>=(const Expr& a, const Expr& b) { return make(Op::GreaterEqual, {a, b}); }

Expr operator&&(const Expr& a, const Expr& b) { return make(Op::And, {a, b}); }
Expr operator||(const Expr& a, const Expr& b) { return make(Op::Or, {a, b}); }
Expr operator!(const Expr& a) { return make(Op::Not, {a}); }
Expr operator&(const Expr& a, const Expr& b) { return make(Op::BitAnd, {a, b}); }
Expr operator|(const Expr& a, const Expr& b) { return make(Op::BitOr, {a, b}); }
Expr operator^(const Expr& a, const Expr& b) { return make(Op::BitXor, {a, b}); }
Expr operator~(const Expr& a) { return make(Op::BitNot, {a}); }
Expr operator<<(const Expr& a, const Expr& b) { return make(Op::ShiftLeft, {a, b}); }
Expr operator>>(const Expr& a, const Expr& b) { return make(Op::ShiftRight, {a, b}); }

Expr min(const Expr& a, const Expr& b) { return make(Op::Min, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return make(Op::Max, {a, b}); }
Expr abs(const Expr& a) { return make(Op::Abs, {a}); }
Expr ceil_div(const Expr& a, const Expr& b) { return make(Op::CeilDiv, {a, b}); }
Expr to_float(const Expr& a) { return make(Op::ToFloat, {a}); }
Expr to_int(const Expr& a) { return make(Op::ToInt, {a}); }
Expr exp(const Expr& a) { return make(Op::Exp, {a}); }
Expr log(const Expr& a) { return make(Op::Log, {a}); }
Expr sqrt(const Expr& a) { return make(Op::Sqrt, {a}); }
Expr tanh(const Expr& a) { return make(Op::Tanh, {a}); }
// clang-format on

Expr shift_right_logical(const Expr& a, const Expr& b) {
  return make(Op::ShiftRightLogical, {a, b});
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  return make(Op::Select, {condition, a, b});
}

Expr hash(const Expr& seed, const Expr& a, const Expr& b) {
  return make(Op::Hash, {seed, a, b});
}

Expr draw(const Expr& seed, const Expr& a, const Expr& b, const Expr& count) {
  return make(Op::Draw, {seed, a, b, count});
}

Expr keep(const Expr& seed, const Expr& a, const Expr& b, double fraction) {
  return make(Op::Keep, {seed, a, b, Expr(fraction)});
}

Expr::Expr(double value) : Expr(expr::make_constant(value)) {}

Expr Expr::truth(bool value) {
  return expr::make_constant(value);
}

Expr Expr::integer(std::int64_t value) {
  return expr::make_constant(value);
}

ScalarType Expr::type() const {
  return node_->type;
}

}  // namespace stof
