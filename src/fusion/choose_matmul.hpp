#pragma once

#include <optional>

#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// What the shipped kernels for matrix products are good at, from times measured on an H200; until a
// cost model and the tuner know better.

// A place for each of them, from 0: of kernels whose constraints hold, the highest is the fastest.
// Nothing for other templates.
std::optional<int> matmul_rank(const Use& use);

// The setting for this product that should take the least time, of a short list of those that were
// best for some shape; empty for a template that is none of them.
kernel::KernelConfig choose_matmul_config(const Use& use);

}  // namespace stof::fusion
