#pragma once

#include <optional>
#include <vector>

#include "fusion/attention.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// The first rules by which a kernel is chosen, until a cost model does it.

// Of several ways to run a group the one to take: its place among them.
//   attention   lists of keys where fewer than 64 keys fall on an active 64 x 64 tile, else tiles
//   otherwise   the template with the fewest rows that its constraints allow (a kernel for 1 to 4
//               rows before one for many), then the one with tuned parameters before a plain one
std::size_t choose_use(const std::vector<Use>& uses, const AttentionMask* mask);

// The parameters of a template for this use, among those that its restrictions allow; nothing where
// they allow none. The default where it is allowed and the work fills the GPU with it; else, of
// those that launch enough blocks, the one nearest to the default.
std::optional<kernel::KernelConfig> choose_config(const Use& use);

}  // namespace stof::fusion
