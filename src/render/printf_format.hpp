#pragma once

#include <string>
#include <string_view>

#include "render/object.hpp"

namespace stof::render {

// Python's format % arguments: a tuple gives many, a dict gives %(names), anything else gives one.
std::string printf_format(Runtime& runtime, std::string_view format, const Value& arguments);

}  // namespace stof::render
