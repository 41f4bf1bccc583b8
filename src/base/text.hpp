#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stof::base {

// A name of unknown origin for an error message: in double quotes, control characters as \x1b, and
// cut after 64 bytes.
std::string quote(std::string_view text);

// The one of the known names that a misspelt one may be meant to be; empty where none is near.
std::string_view nearest(std::string_view name, std::span<const std::string> known);

// Such as "1 launch" and "3 launches".
std::string counted(std::int64_t count, std::string_view one, std::string_view others);

}  // namespace stof::base
