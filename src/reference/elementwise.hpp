#pragma once

#include "reference/call.hpp"

namespace stof::reference {

// Add to Minimum, broadcast as NumPy does.
Array binary(const Call& call);

// Scale to Reciprocal.
Array unary(const Call& call);

Array cast(const Call& call);

}  // namespace stof::reference
