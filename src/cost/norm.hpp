#pragma once

#include <optional>
#include <vector>

#include "cost/model.hpp"
#include "cost/sm.hpp"

// Templates like layer_norm and rms_norm, whose rows stay in the registers of some threads.
namespace stof::cost {

// The time until the data of a row are there and through it; nothing for other templates.
std::optional<double> norm_start_us(const Sm& sm, const Problem& problem,
                                    const kernel::KernelConfig& config);

// See Model::settings.
std::vector<kernel::KernelConfig> norm_settings(const Sm& sm, const Problem& problem);

}  // namespace stof::cost
