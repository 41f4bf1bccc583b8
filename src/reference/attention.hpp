#pragma once

#include <vector>

#include "reference/call.hpp"

namespace stof::reference {

// The output and, where it is asked for, the log-sum-exp.
std::vector<Array> attention(const Call& call);

}  // namespace stof::reference
