#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "render/operators.hpp"
#include "render/printf_format.hpp"

namespace stof::render {

namespace {

constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_overflow(std::string_view what) {
  throw Failure(fmt::format("{}: the result is beyond 64-bit integers", what));
}

[[noreturn]] void fail_operands(BinaryOperator op, const Value& left, const Value& right) {
  throw Failure(fmt::format("unsupported operand types for {}: '{}' and '{}'",
                            kSymbols[static_cast<int>(op)], type_name(left), type_name(right)));
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t power = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, base, &power)) {
      fail_overflow("**");
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      fail_overflow("**");
    }
  }
  return power;
}

double real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) {
    throw Failure("zero cannot be raised to a negative power");
  }
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent)) {
    throw Failure("a negative number to a fractional power is complex");
  }
  const double power = std::pow(base, exponent);
  if (std::isinf(power) && std::isfinite(base) && std::isfinite(exponent)) {
    throw Failure("**: the result is beyond floating point");
  }
  return power;
}

// The quotient to the nearest double, also where an operand is none itself.
double divide(std::int64_t left, std::int64_t right) {
  return static_cast<double>(static_cast<long double>(left) / static_cast<long double>(right));
}

std::int64_t floor_divide(std::int64_t left, std::int64_t right) {
  if (left == std::numeric_limits<std::int64_t>::min() && right == -1) {
    fail_overflow("//");
  }
  const std::int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(std::int64_t left, std::int64_t right) {
  if (right == -1) {
    return 0;
  }
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

struct QuotientAndRest {
  double quotient;
  double rest;
};

// Division towards minus infinity, with the signs of zeros that Python gives.
QuotientAndRest floor_divide(double left, double right) {
  double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0) {
    if ((right < 0) != (rest < 0)) {
      rest += right;
      quotient -= 1.0;
    }
  } else {
    rest = std::copysign(0.0, right);
  }
  if (quotient == 0) {
    return {.quotient = std::copysign(0.0, left / right), .rest = rest};
  }
  const double floor = std::floor(quotient);
  return {.quotient = quotient - floor > 0.5 ? floor + 1.0 : floor, .rest = rest};
}

void check_divisor(bool is_zero) {
  if (is_zero) {
    throw Failure("division by zero");
  }
}

Value on_integers(BinaryOperator op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  switch (op) {
    case BinaryOperator::Add:
      if (__builtin_add_overflow(left, right, &result)) {
        fail_overflow("+");
      }
      return Value(result);
    case BinaryOperator::Subtract:
      if (__builtin_sub_overflow(left, right, &result)) {
        fail_overflow("-");
      }
      return Value(result);
    case BinaryOperator::Multiply:
      if (__builtin_mul_overflow(left, right, &result)) {
        fail_overflow("*");
      }
      return Value(result);
    case BinaryOperator::Divide:
      check_divisor(right == 0);
      return Value(divide(left, right));
    case BinaryOperator::FloorDivide:
      check_divisor(right == 0);
      return Value(floor_divide(left, right));
    case BinaryOperator::Modulo:
      check_divisor(right == 0);
      return Value(floor_modulo(left, right));
    case BinaryOperator::Power:
      return right < 0 ? Value(real_power(static_cast<double>(left), static_cast<double>(right)))
                       : Value(integer_power(left, right));
  }
  return {};
}

Value on_reals(BinaryOperator op, double left, double right) {
  switch (op) {
    case BinaryOperator::Add:
      return Value(left + right);
    case BinaryOperator::Subtract:
      return Value(left - right);
    case BinaryOperator::Multiply:
      return Value(left * right);
    case BinaryOperator::Divide:
      check_divisor(right == 0);
      return Value(left / right);
    case BinaryOperator::FloorDivide:
      check_divisor(right == 0);
      return Value(floor_divide(left, right).quotient);
    case BinaryOperator::Modulo:
      check_divisor(right == 0);
      return Value(floor_divide(left, right).rest);
    case BinaryOperator::Power:
      return Value(real_power(left, right));
  }
  return {};
}

std::vector<Value> joined(Runtime& runtime, const std::vector<Value>& left,
                          const std::vector<Value>& right) {
  runtime.budget.allocate((left.size() + right.size()) * sizeof(Value));
  std::vector<Value> items = left;
  items.insert(items.end(), right.begin(), right.end());
  return items;
}

Value add_sequences(Runtime& runtime, const Value& left, const Value& right) {
  if (left.text() != nullptr && right.text() != nullptr) {
    const std::size_t size = left.text()->bytes.size() + right.text()->bytes.size();
    runtime.budget.check_text(size);
    runtime.budget.allocate(size);
    return Value(left.text()->bytes + right.text()->bytes);
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return make_list(joined(runtime, left.list()->items, right.list()->items));
  }
  if (left.tuple() != nullptr && right.tuple() != nullptr) {
    return make_tuple(joined(runtime, left.tuple()->items, right.tuple()->items));
  }
  return {};
}

std::vector<Value> repeated(Runtime& runtime, const std::vector<Value>& items, std::size_t count) {
  std::size_t size = 0;
  if (__builtin_mul_overflow(items.size(), count, &size)) {
    throw Failure("*: the result is too long");
  }
  runtime.budget.step(size);
  runtime.budget.allocate(size * sizeof(Value));
  std::vector<Value> result;
  result.reserve(size);
  for (std::size_t i = 0; i < count && !items.empty(); ++i) {
    result.insert(result.end(), items.begin(), items.end());
  }
  return result;
}

Value repeat_text(Runtime& runtime, std::string_view text, std::size_t count) {
  std::size_t size = 0;
  if (__builtin_mul_overflow(text.size(), count, &size)) {
    size = std::numeric_limits<std::size_t>::max();
  }
  runtime.budget.check_text(size);
  runtime.budget.allocate(size);
  std::string result;
  result.reserve(size);
  for (std::size_t i = 0; i < count && !text.empty(); ++i) {
    result += text;
  }
  return Value(std::move(result));
}

Value repeat_sequence(Runtime& runtime, const Value& sequence, const Value& number) {
  const auto integer = as_integer(number);
  if (!integer) {
    return {};
  }
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(*integer, 0));
  if (const Text* text = sequence.text()) {
    return repeat_text(runtime, text->bytes, count);
  }
  if (const List* list = sequence.list()) {
    return make_list(repeated(runtime, list->items, count));
  }
  if (const Tuple* tuple = sequence.tuple()) {
    return make_tuple(repeated(runtime, tuple->items, count));
  }
  return {};
}

Value on_sequences(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  if (op == BinaryOperator::Add) {
    return add_sequences(runtime, left, right);
  }
  if (op == BinaryOperator::Multiply) {
    Value result = repeat_sequence(runtime, left, right);
    return result.is_missing() ? repeat_sequence(runtime, right, left) : result;
  }
  return {};
}

}  // namespace

Value binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right) {
  if (const Undefined* undefined = left.undefined()) {
    fail_undefined(*undefined);
  }
  if (op == BinaryOperator::Modulo && left.is_text()) {
    return Value(printf_format(runtime, left.text()->bytes, right));
  }
  if (const Undefined* undefined = right.undefined()) {
    fail_undefined(*undefined);
  }
  if (const auto integers = std::pair(as_integer(left), as_integer(right));
      integers.first && integers.second) {
    return on_integers(op, *integers.first, *integers.second);
  }
  if (const auto reals = std::pair(as_real(left), as_real(right)); reals.first && reals.second) {
    return on_reals(op, *reals.first, *reals.second);
  }
  Value result = on_sequences(runtime, op, left, right);
  if (result.is_missing()) {
    fail_operands(op, left, right);
  }
  return result;
}

Value negate(const Value& value) {
  if (const auto integer = as_integer(value)) {
    return on_integers(BinaryOperator::Subtract, 0, *integer);
  }
  if (const double* real = value.real()) {
    return Value(-*real);
  }
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  throw Failure(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Value plus(const Value& value) {
  if (const auto integer = as_integer(value)) {
    return Value(*integer);
  }
  if (value.real() != nullptr) {
    return value;
  }
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  throw Failure(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
}

}  // namespace stof::render
