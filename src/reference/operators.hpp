#pragma once

#include <vector>

#include "reference/call.hpp"

namespace stof::reference {

// Runs one operator: its results, in order.
std::vector<Array> run_operator(const Call& call);

}  // namespace stof::reference
