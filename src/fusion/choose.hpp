#pragma once

#include <optional>
#include <vector>

#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// The first rules by which a kernel is chosen, until a cost model does it.

// Whether an attention template takes lists of keys, which masks that differ from run to run lack.
bool reads_key_rows(const Use& use);

// Of several ways to run a group the one to take: its place among them. For attention one with
// lists of keys where fewer than 64 of them fall on an active 64 x 64 tile, else one with tiles,
// and of these the one for Hopper where its blocks fill the GPU; for matrix products as matmul_rank
// says; else the one with the most constraints.
std::size_t choose_use(const std::vector<Use>& uses, const AttentionMask* mask);

// The parameters of a template for this use: what is known to be fast for the shape, else the
// default, else the allowed setting nearest to it; nothing where the restrictions allow none.
std::optional<kernel::KernelConfig> choose_config(const Use& use, const AttentionMask* mask);

}  // namespace stof::fusion
