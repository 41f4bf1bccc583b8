#pragma once

#include "reference/call.hpp"

namespace stof::reference {

Array rotary(const Call& call);
Array rotary_heads(const Call& call);

}  // namespace stof::reference
