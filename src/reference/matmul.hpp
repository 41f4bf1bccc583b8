#pragma once

#include "reference/call.hpp"

namespace stof::reference {

Array matmul(const Call& call);
Array linear(const Call& call);

}  // namespace stof::reference
