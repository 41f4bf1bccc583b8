#pragma once

#include <string>

#include "render/value.hpp"

namespace stof::render {

// What the tojson filter gives: json.dumps with sorted keys, then < > & ' as \u escapes. `indent`
// is none, a number of spaces or a string. Throws Failure for what JSON cannot hold.
std::string to_json(const Value& value, const Value& indent);

}  // namespace stof::render
