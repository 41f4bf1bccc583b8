#pragma once

#include <string>
#include <string_view>

namespace stof::base {

// A name of unknown origin for an error message: in double quotes, control characters as \x1b, and
// cut after 64 bytes.
std::string quote(std::string_view text);

}  // namespace stof::base
