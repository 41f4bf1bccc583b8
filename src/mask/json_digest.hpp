#pragma once

#include <string>

#include "stof/tensor.hpp"

namespace stof::mask {

// What names a tensor in a Sidecar.
std::string tensor_digest(const HostTensor& tensor);

}  // namespace stof::mask
