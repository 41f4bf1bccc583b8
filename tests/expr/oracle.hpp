#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>

#include "expr/node.hpp"
#include "expr/table.hpp"

// Evaluates a tree in the plainest way, from the definitions in stof/expr.hpp: integers in 128
// bits, then wrapped.
namespace stof::test {

__extension__ using Wide = __int128;

using OracleValue = std::variant<bool, std::int64_t, double>;

inline std::int64_t wrap(Wide value) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
}

// The quotient rounded towards minus infinity.
inline Wide floor_quotient(Wide a, Wide b) {
  Wide q = a / b;
  while (q * b > a && b > 0) {
    --q;
  }
  while (q * b < a && b < 0) {
    --q;
  }
  return q;
}

inline std::uint64_t splitmix(std::uint64_t state) {
  state += 0x9E3779B97F4A7C15ull;
  state ^= state >> 30;
  state *= 0xBF58476D1CE4E5B9ull;
  state ^= state >> 27;
  state *= 0x94D049BB133111EBull;
  state ^= state >> 31;
  return state;
}

inline std::uint64_t splitmix(std::int64_t seed, std::int64_t a, std::int64_t b) {
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  return splitmix(splitmix(splitmix(bits(seed)) ^ bits(a)) ^ bits(b));
}

struct Oracle {
  std::map<std::string, OracleValue> scalars;

  static std::int64_t read_lengths(std::int64_t i) { return i % 100 + 3; }
  static double read_bias(std::int64_t i, std::int64_t j) {
    return static_cast<double>(i % 7) - static_cast<double>(j % 5) / 4;
  }

  bool truth(const Expr& e) const { return std::get<bool>((*this)(e)); }
  std::int64_t whole(const Expr& e) const { return std::get<std::int64_t>((*this)(e)); }
  double number(const Expr& e) const { return std::get<double>((*this)(e)); }

  OracleValue operator()(const Expr& e) const {
    const expr::Node& node = e.node();
    using expr::Op;
    switch (node.op) {
      case Op::Constant:
        return node.value();
      case Op::Scalar:
        return scalars.at(node.name());
      case Op::Table:
        return entry(node.table(), whole(node.operands[0]));
      case Op::Capture:
        if (node.capture().name() == "lengths") {
          return read_lengths(whole(node.operands[0]));
        }
        return read_bias(whole(node.operands[0]), whole(node.operands[1]));
      case Op::Select:
        return (*this)(node.operands[truth(node.operands[0]) ? 1 : 2]);
      case Op::Hash:
      case Op::Draw:
      case Op::Keep:
        return hashed(node);
      default:
        break;
    }
    if (node.operands[0].type() == ScalarType::Bool) {
      return on_truths(node);
    }
    return node.operands[0].type() == ScalarType::Int ? on_integers(node) : on_floats(node);
  }

  static OracleValue entry(const Table& table, std::int64_t index) {
    const std::int64_t at = index < 0 ? 0 : index >= table.size() ? table.size() - 1 : index;
    const std::int64_t word = table.data().entries[static_cast<std::size_t>(at)];
    if (table.type() == ScalarType::Int) {
      return word;
    }
    double value = 0;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }

  OracleValue hashed(const expr::Node& node) const {
    const std::uint64_t bits =
        splitmix(whole(node.operands[0]), whole(node.operands[1]), whole(node.operands[2]));
    if (node.op == expr::Op::Hash) {
      return static_cast<std::int64_t>(bits);
    }
    if (node.op == expr::Op::Keep) {
      return static_cast<double>(bits >> 40) < std::floor(number(node.operands[3]) * 16777216);
    }
    const Wide count = whole(node.operands[3]);
    const Wide drawn = bits >> 33;
    return count == 0 ? std::int64_t{0} : wrap(drawn - floor_quotient(drawn, count) * count);
  }

  OracleValue on_truths(const expr::Node& node) const {
    const bool a = truth(node.operands[0]);
    const bool b = node.operands.size() > 1 && truth(node.operands[1]);
    switch (node.op) {
      case expr::Op::Not:
        return !a;
      case expr::Op::And:
        return a && b;
      case expr::Op::Or:
        return a || b;
      case expr::Op::Equal:
        return a == b;
      case expr::Op::NotEqual:
        return a != b;
      default:
        throw std::logic_error("no operation on truth values");
    }
  }

  OracleValue on_integers(const expr::Node& node) const {
    const Wide a = whole(node.operands[0]);
    const Wide b = node.operands.size() > 1 ? whole(node.operands[1]) : 0;
    const int count = static_cast<int>(((b % 64) + 64) % 64);
    const auto bits = static_cast<std::uint64_t>(a);
    using expr::Op;
    switch (node.op) {
      case Op::Negate:
        return wrap(-a);
      case Op::BitNot:
        return wrap(-a - 1);
      case Op::Abs:
        return wrap(a < 0 ? -a : a);
      case Op::ToFloat:
        return static_cast<double>(wrap(a));
      case Op::Add:
        return wrap(a + b);
      case Op::Subtract:
        return wrap(a - b);
      case Op::Multiply:
        return wrap(a * b);
      case Op::Divide:
        return b == 0 ? std::int64_t{0} : wrap(floor_quotient(a, b));
      case Op::Modulo:
        return b == 0 ? std::int64_t{0} : wrap(a - floor_quotient(a, b) * b);
      case Op::CeilDiv:
        return b == 0 ? std::int64_t{0} : wrap(-floor_quotient(-a, b));
      case Op::BitAnd:
        return wrap(a) & wrap(b);
      case Op::BitOr:
        return wrap(a) | wrap(b);
      case Op::BitXor:
        return wrap(a) ^ wrap(b);
      case Op::ShiftLeft:
        return wrap(a * (Wide{1} << count));
      case Op::ShiftRight:
        return wrap(floor_quotient(a, Wide{1} << count));
      case Op::ShiftRightLogical:
        return static_cast<std::int64_t>(bits >> count);
      case Op::Min:
        return wrap(a < b ? a : b);
      case Op::Max:
        return wrap(a < b ? b : a);
      case Op::Equal:
        return a == b;
      case Op::NotEqual:
        return a != b;
      case Op::Less:
        return a < b;
      case Op::LessEqual:
        return a <= b;
      case Op::Greater:
        return a > b;
      case Op::GreaterEqual:
        return a >= b;
      default:
        throw std::logic_error("no operation on integers");
    }
  }

  OracleValue on_floats(const expr::Node& node) const {
    const double a = number(node.operands[0]);
    const double b = node.operands.size() > 1 ? number(node.operands[1]) : 0;
    using expr::Op;
    switch (node.op) {
      case Op::Negate:
        return -a;
      case Op::Abs:
        return std::fabs(a);
      case Op::ToInt:
        return truncated(a);
      case Op::Exp:
        return std::exp(a);
      case Op::Log:
        return std::log(a);
      case Op::Sqrt:
        return std::sqrt(a);
      case Op::Tanh:
        return std::tanh(a);
      case Op::Add:
        return a + b;
      case Op::Subtract:
        return a - b;
      case Op::Multiply:
        return a * b;
      case Op::Divide:
        return divided(a, b);
      case Op::Min:
        return std::fmin(a, b);
      case Op::Max:
        return std::fmax(a, b);
      case Op::Equal:
        return a == b;
      case Op::NotEqual:
        return a != b;
      case Op::Less:
        return a < b;
      case Op::LessEqual:
        return a <= b;
      case Op::Greater:
        return a > b;
      case Op::GreaterEqual:
        return a >= b;
      default:
        throw std::logic_error("no operation on floats");
    }
  }

  // IEEE 754 division, spelled out where b is 0 for the sanitizers' sake.
  static double divided(double a, double b) {
    if (b != 0 || std::isnan(a)) {
      return a / b;
    }
    const double infinity = std::numeric_limits<double>::infinity();
    return a == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : (std::signbit(a) == std::signbit(b) ? infinity : -infinity);
  }

  static std::int64_t truncated(double a) {
    if (std::isnan(a)) {
      return 0;
    }
    if (std::fabs(a) >= 9.3e18) {
      return a < 0 ? std::numeric_limits<std::int64_t>::min()
                   : std::numeric_limits<std::int64_t>::max();
    }
    const auto wide = static_cast<Wide>(a);
    const Wide low = std::numeric_limits<std::int64_t>::min();
    const Wide high = std::numeric_limits<std::int64_t>::max();
    return wrap(wide < low ? low : wide > high ? high : wide);
  }
};

// The same value: equal, or both NaN.
inline bool agrees(const OracleValue& a, const OracleValue& b) {
  if (a.index() != b.index()) {
    return false;
  }
  if (const double* x = std::get_if<double>(&a)) {
    const double y = std::get<double>(b);
    return *x == y || (std::isnan(*x) && std::isnan(y));
  }
  return a == b;
}

}  // namespace stof::test
