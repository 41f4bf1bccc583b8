#pragma once

#include <string>
#include <string_view>

#include "render/object.hpp"

namespace stof::render {

// str.format: {}, {0}, {name}, {0.attribute}, {0[item]}, !r !s !a and format specifications.
std::string str_format(Runtime& runtime, std::string_view format, const Arguments& arguments);

// format(value, specification): [[fill]align][sign][#][0][width][,_][.precision][type].
std::string format_value(Runtime& runtime, const Value& value, std::string_view specification);

}  // namespace stof::render
