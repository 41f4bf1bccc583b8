#pragma once

#include <string>

namespace stof {

// One line for a bug report: the version, the number of embedded templates, and the GPUs that this
// process may use or why there are none. Never throws CudaError.
std::string describe();

}  // namespace stof
