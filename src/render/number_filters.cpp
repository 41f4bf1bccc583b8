#include <cmath>

#include <fmt/format.h>

#include "render/builtin.hpp"
#include "render/iteration.hpp"
#include "render/number_format.hpp"
#include "render/operators.hpp"
#include "render/selection.hpp"

// Filters over numbers: args[0] is the number.
namespace stof::render {

namespace {

// int(number). Throws Failure beyond int64; no value for a float that is not a number.
Value truncated(double number) {
  if (std::isnan(number)) {
    return {};
  }
  if (!(std::fabs(number) < 0x1p63)) {
    throw Failure("cannot convert float to a 64-bit integer");
  }
  return Value(static_cast<std::int64_t>(number));
}

Value abs(BuiltinCall& call) {
  const Value& value = call.args[0];
  if (const double* real = value.real()) {
    return Value(std::fabs(*real));
  }
  if (const auto integer = as_integer(value)) {
    return *integer < 0 ? negate(value) : Value(*integer);
  }
  require_defined(value);
  throw Failure(fmt::format("bad operand type for abs(): '{}'", type_name(value)));
}

Value parse_int(std::string_view text, std::int64_t base) {
  const ParsedInteger parsed = parse_integer(text, base);
  if (parsed.status == ParsedInteger::Status::Overflow) {
    throw Failure("int: the number is beyond 64-bit integers");
  }
  if (parsed.status == ParsedInteger::Status::Good) {
    return Value(parsed.number);
  }
  const ParsedReal real = parse_real(text);
  return real.is_good ? truncated(real.number) : Value();
}

Value int_filter(BuiltinCall& call) {
  const Value& value = call.args[0];
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  Value number;
  if (const Text* text = value.text()) {
    number = parse_int(text->bytes, integer_argument(call.args[2], "base", 10));
  } else if (const auto integer = as_integer(value)) {
    number = Value(*integer);
  } else if (const double* real = value.real()) {
    number = truncated(*real);
  }
  if (!number.is_missing()) {
    return number;
  }
  return call.args[1].is_missing() ? Value(0) : call.args[1];
}

Value float_filter(BuiltinCall& call) {
  const Value& value = call.args[0];
  if (const Undefined* undefined = value.undefined()) {
    fail_undefined(*undefined);
  }
  if (const auto real = as_real(value)) {
    return Value(*real);
  }
  if (const Text* text = value.text()) {
    if (const ParsedReal parsed = parse_real(text->bytes); parsed.is_good) {
      return Value(parsed.number);
    }
  }
  return call.args[1].is_missing() ? Value(0.0) : call.args[1];
}

std::int64_t round_integer(std::int64_t number, std::int64_t digits) {
  if (digits >= 0) {
    return number;
  }
  if (digits < -18) {
    return 0;
  }
  std::int64_t unit = 1;
  for (std::int64_t i = digits; i < 0; ++i) {
    unit *= 10;
  }
  const std::int64_t rest = ((number % unit) + unit) % unit;
  const std::int64_t floor_units = (number - rest) / unit;
  const bool goes_up = rest > unit - rest || (rest == unit - rest && floor_units % 2 != 0);
  std::int64_t rounded = 0;
  if (__builtin_mul_overflow(floor_units + (goes_up ? 1 : 0), unit, &rounded)) {
    throw Failure("round: the result is beyond 64-bit integers");
  }
  return rounded;
}

Value round_towards(BuiltinCall& call, std::int64_t digits, bool is_ceil) {
  const Value scale = binary(call.runtime, BinaryOperator::Power, Value(10), Value(digits));
  const Value scaled = binary(call.runtime, BinaryOperator::Multiply, call.args[0], scale);
  Value whole = scaled;
  if (const double* real = scaled.real()) {
    whole = truncated(is_ceil ? std::ceil(*real) : std::floor(*real));
    if (whole.is_missing()) {
      throw Failure("cannot convert float NaN to integer");
    }
  } else if (!as_integer(scaled)) {
    throw Failure(fmt::format("must be real number, not {}", type_name(scaled)));
  }
  return binary(call.runtime, BinaryOperator::Divide, whole, scale);
}

Value round(BuiltinCall& call) {
  const std::string method =
      call.args[2].is_missing() ? "common" : text_argument(call.args[2], "method");
  if (method != "common" && method != "ceil" && method != "floor") {
    throw Failure("method must be common, ceil or floor");
  }
  if (method != "common") {
    return round_towards(call, integer_argument(call.args[1], "precision", 0), method == "ceil");
  }
  if (const auto integer = as_integer(call.args[0])) {
    return Value(round_integer(
        *integer, call.args[1].is_none() ? 0 : integer_argument(call.args[1], "precision", 0)));
  }
  const double* real = call.args[0].real();
  if (real == nullptr) {
    require_defined(call.args[0]);
    throw Failure(fmt::format("type {} doesn't define __round__ method", type_name(call.args[0])));
  }
  if (call.args[1].is_none()) {
    Value whole = truncated(round_real(*real, 0));
    if (whole.is_missing()) {
      throw Failure("cannot convert float NaN to integer");
    }
    return whole;
  }
  return Value(round_real(*real, integer_argument(call.args[1], "precision", 0)));
}

Value sum(BuiltinCall& call) {
  Value total = call.args[2].is_missing() ? Value(0) : call.args[2];
  if (total.is_text()) {
    throw Failure("sum() can't sum strings [use ''.join(seq) instead]");
  }
  const AttributeGetter getter(call.args[1]);
  const std::shared_ptr<Iterator> items = iterate(call.args[0]);
  for (Value item = items->next(call.runtime); !item.is_missing();
       item = items->next(call.runtime)) {
    total = binary(call.runtime, BinaryOperator::Add, total, getter(call.runtime, item));
  }
  return total;
}

constexpr Builtin kNumberFilters[] = {
    {"abs", "x /", abs},
    {"float", "value default?", float_filter},
    {"int", "value default? base?", int_filter},
    {"round", "value precision? method?", round},
    {"sum", "iterable attribute? start?", sum},
};

}  // namespace

std::span<const Builtin> number_filters() {
  return kNumberFilters;
}

}  // namespace stof::render
