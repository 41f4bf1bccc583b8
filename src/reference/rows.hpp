#pragma once

#include <vector>

#include "reference/call.hpp"

// Operators that take a row, or a line along another axis, as a whole.
namespace stof::reference {

Array layer_norm(const Call& call);
Array rms_norm(const Call& call);

// The factor of each row and, where it is asked for, its mean.
std::vector<Array> row_moments(const Call& call);
Array apply_moments(const Call& call);

// The probabilities and, where it is asked for, the log-sum-exp.
std::vector<Array> softmax(const Call& call);

// ReduceSum, ReduceMean, ReduceMax.
Array reduce(const Call& call);

}  // namespace stof::reference
