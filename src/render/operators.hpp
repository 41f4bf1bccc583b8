#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "render/object.hpp"
#include "render/value.hpp"

// Python's operators. All throw Failure where Python raises, and where an integer leaves int64.
namespace stof::render {

enum class BinaryOperator { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
enum class CompareOperator { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

// The name of its type in Python.
std::string_view type_name(const Value& value);

// A strict undefined has no truth, a lenient one and every empty container is false.
bool is_truthy(const Value& value);
bool is_callable(const Value& value);
[[noreturn]] void fail_undefined(const Undefined& undefined);
// Throws the failure of a strict undefined value; others pass.
void require_defined(const Value& value);

// A bool or an int, as an int.
std::optional<std::int64_t> as_integer(const Value& value);
// A bool, an int or a float, as a float.
std::optional<double> as_real(const Value& value);

Value binary(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Value negate(const Value& value);
Value plus(const Value& value);

// What going through a text from end to end counts as; 0 for other values.
std::uint64_t scan_steps(const Value& value);

bool equals(const Value& left, const Value& right);
bool less(const Value& left, const Value& right);
bool compare(Runtime& runtime, CompareOperator op, const Value& left, const Value& right);
bool contains(Runtime& runtime, const Value& container, const Value& item);
// The same object in memory, or the same small value.
bool is_identical(const Value& left, const Value& right);

}  // namespace stof::render
