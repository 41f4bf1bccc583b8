#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "render/object.hpp"

// Filters, tests, methods and functions of the language: tables of names, parameters and functions.
namespace stof::render {

// A call with its arguments bound: args[i] is that of parameter i, no value where it was left out.
struct BuiltinCall {
  Runtime& runtime;
  std::vector<Value> args;
  Arguments rest;  // of a builtin that takes any: what no parameter took
};

struct Builtin {
  std::string_view name;
  // Parameters by name: "old new count?" where ? may be left out. A / after some makes those before
  // it positional only; a final * takes any further arguments, a ** named ones alone.
  std::string_view parameters;
  Value (*function)(BuiltinCall&);
};

// Binds as Python would. Throws Failure for arguments that do not fit.
BuiltinCall bind(Runtime& runtime, const Builtin& builtin, Arguments arguments);
Value call(Runtime& runtime, const Builtin& builtin, Arguments arguments);

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);

std::span<const Builtin> text_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> selection_filters();
std::span<const Builtin> ordering_filters();
std::span<const Builtin> tests();

// A function of the global scope.
Value make_function(const Builtin& builtin);
// Adds range, dict, namespace, joiner, cycler and fail to a scope.
void add_globals(Dict& scope);

// Arguments as C++ values, where a parameter allows only some. Throw Failure that names the
// parameter.
std::int64_t integer_argument(const Value& value, std::string_view name);
std::int64_t integer_argument(const Value& value, std::string_view name, std::int64_t otherwise);
bool truth_argument(const Value& value, bool otherwise);
const std::string& text_argument(const Value& value, std::string_view name);

}  // namespace stof::render
