#pragma once

#include <string>
#include <string_view>

#include "render/value.hpp"

// Values as text, byte for byte as Python prints them.
namespace stof::render {

// str() and repr(). Throw Failure for what has no text (an undefined value, a generator), for
// values nested too deeply and for texts too long.
Value to_text(const Value& value);
std::string to_string(const Value& value);
std::string repr(const Value& value);

// The shortest digits that read back as the same number.
std::string format_real(double number);
// A string as Python writes its literal.
std::string quote(std::string_view text, bool is_ascii_only = false);

}  // namespace stof::render
