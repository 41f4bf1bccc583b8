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

// Tiles of 64 queries for each SM that are few.
inline constexpr double kFewTilesPerSm = 5;

// The setting of band_sm90 for other masks, where tiles are about that few and have up to `keys`
// keys, all as many or some far fewer than others; nothing where lists are faster. Only where tiles
// are in pairs is `order` other than 0.
std::optional<kernel::KernelConfig> config_of_few_tiles(const Use& use, std::int64_t keys,
                                                        bool are_even);
// Its setting for many tiles of heads of up to 64 dimensions.
kernel::KernelConfig config_of_many_narrow_tiles();

}  // namespace stof::fusion
