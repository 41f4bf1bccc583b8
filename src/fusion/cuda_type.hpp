#pragma once

#include "stof/dtype.hpp"

namespace stof::fusion {

// What a kernel calls the type: "half".
const char* cuda_type(DType dtype);

}  // namespace stof::fusion
