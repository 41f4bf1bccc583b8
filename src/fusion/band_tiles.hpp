#pragma once

#include <optional>

#include "contract/contract.hpp"
#include "fusion/use.hpp"
#include "kernel/kernel_config.hpp"

namespace stof::fusion {

// Whether it has the parameters of band_sm90.
bool has_band_tiles(const contract::TemplateContract& contract);

// The setting of band_sm90 along this band, by times on an H200; nothing where lists of tiles, by a
// warp that is ahead, are faster. `per_row` is how many tiles of 64 keys 64 queries see, in the
// mean.
std::optional<kernel::KernelConfig> band_config(const Use& use, double per_row);

}  // namespace stof::fusion
