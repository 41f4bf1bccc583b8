#include "render/builtin.hpp"
#include "render/formatting.hpp"
#include "render/iteration.hpp"
#include "render/operators.hpp"
#include "render/text_operations.hpp"

// The tests of the `is` operator: args[0] is the value tested.
namespace stof::render {

namespace {

bool is_remainder(BuiltinCall& call, const Value& divisor, std::int64_t wanted) {
  const Value rest = binary(call.runtime, BinaryOperator::Modulo, call.args[0], divisor);
  return equals(rest, Value(wanted));
}

template <CompareOperator op>
Value compare_test(BuiltinCall& call) {
  return Value(compare(call.runtime, op, call.args[0], call.args[1]));
}

Value odd(BuiltinCall& call) {
  return Value(is_remainder(call, Value(2), 1));
}
Value even(BuiltinCall& call) {
  return Value(is_remainder(call, Value(2), 0));
}
Value divisibleby(BuiltinCall& call) {
  return Value(is_remainder(call, call.args[1], 0));
}
Value defined(BuiltinCall& call) {
  return Value(call.args[0].undefined() == nullptr);
}
Value undefined(BuiltinCall& call) {
  return Value(call.args[0].undefined() != nullptr);
}
Value none(BuiltinCall& call) {
  return Value(call.args[0].is_none());
}
Value boolean(BuiltinCall& call) {
  return Value(call.args[0].boolean() != nullptr);
}
template <bool wanted>
Value truth(BuiltinCall& call) {
  const bool* value = call.args[0].boolean();
  return Value(value != nullptr && *value == wanted);
}
Value integer(BuiltinCall& call) {
  return Value(call.args[0].integer() != nullptr);
}
Value real(BuiltinCall& call) {
  return Value(call.args[0].real() != nullptr);
}
Value number(BuiltinCall& call) {
  return Value(as_real(call.args[0]).has_value());
}
Value string(BuiltinCall& call) {
  return Value(call.args[0].is_text());
}
Value mapping(BuiltinCall& call) {
  return Value(call.args[0].dict() != nullptr);
}
Value sequence(BuiltinCall& call) {
  // Whatever has a length and items, a dict and a lenient undefined too; not a view of a dict.
  const Value& value = call.args[0];
  const bool is_lenient = value.undefined() != nullptr && !value.undefined()->is_strict;
  return Value(is_lenient || value.is_text() || value.list() != nullptr ||
               value.tuple() != nullptr || value.dict() != nullptr ||
               value.object_as<Range>() != nullptr);
}
Value iterable(BuiltinCall& call) {
  return Value(is_iterable(call.args[0]));
}
Value callable(BuiltinCall& call) {
  return Value(is_callable(call.args[0]));
}
Value lower(BuiltinCall& call) {
  return Value(is_lower(to_string(call.args[0])));
}
Value upper(BuiltinCall& call) {
  return Value(is_upper(to_string(call.args[0])));
}
Value sameas(BuiltinCall& call) {
  return Value(is_identical(call.args[0], call.args[1]));
}
// A name that has no hash, such as a list, fails there and here.
Value filter(BuiltinCall& call) {
  ValueHash()(call.args[0]);
  return Value(call.args[0].is_text() && find_filter(call.args[0].text()->bytes) != nullptr);
}
Value test(BuiltinCall& call) {
  ValueHash()(call.args[0]);
  return Value(call.args[0].is_text() && find_test(call.args[0].text()->bytes) != nullptr);
}

constexpr Builtin kTests[] = {
    {"!=", "a b /", compare_test<CompareOperator::NotEqual>},
    {"<", "a b /", compare_test<CompareOperator::Less>},
    {"<=", "a b /", compare_test<CompareOperator::LessEqual>},
    {"==", "a b /", compare_test<CompareOperator::Equal>},
    {">", "a b /", compare_test<CompareOperator::Greater>},
    {">=", "a b /", compare_test<CompareOperator::GreaterEqual>},
    {"boolean", "value", boolean},
    {"callable", "obj /", callable},
    {"defined", "value", defined},
    {"divisibleby", "value num", divisibleby},
    {"eq", "a b /", compare_test<CompareOperator::Equal>},
    {"equalto", "a b /", compare_test<CompareOperator::Equal>},
    {"even", "value", even},
    {"false", "value", truth<false>},
    {"filter", "value", filter},
    {"float", "value", real},
    {"ge", "a b /", compare_test<CompareOperator::GreaterEqual>},
    {"greaterthan", "a b /", compare_test<CompareOperator::Greater>},
    {"gt", "a b /", compare_test<CompareOperator::Greater>},
    {"in", "value seq", compare_test<CompareOperator::In>},
    {"integer", "value", integer},
    {"iterable", "value", iterable},
    {"le", "a b /", compare_test<CompareOperator::LessEqual>},
    {"lessthan", "a b /", compare_test<CompareOperator::Less>},
    {"lower", "value", lower},
    {"lt", "a b /", compare_test<CompareOperator::Less>},
    {"mapping", "value", mapping},
    {"ne", "a b /", compare_test<CompareOperator::NotEqual>},
    {"none", "value", none},
    {"number", "value", number},
    {"odd", "value", odd},
    {"sameas", "value other", sameas},
    {"sequence", "value", sequence},
    {"string", "value", string},
    {"test", "value", test},
    {"true", "value", truth<true>},
    {"undefined", "value", undefined},
    {"upper", "value", upper},
};

}  // namespace

std::span<const Builtin> tests() {
  return kTests;
}

}  // namespace stof::render
