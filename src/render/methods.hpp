#pragma once

#include <span>
#include <string_view>

#include "render/builtin.hpp"

namespace stof::render {

// A method of a string, list, tuple, dict or number, bound to the value; no value where Python's
// type has none of that name. Throws Failure for one that Python has and this engine has not.
Value find_method(const Value& self, std::string_view name);

// In these tables the first parameter is the value itself.
std::span<const Builtin> text_methods();
std::span<const Builtin> list_methods();
std::span<const Builtin> tuple_methods();
std::span<const Builtin> dict_methods();
std::span<const Builtin> real_methods();

}  // namespace stof::render
