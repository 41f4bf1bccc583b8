#pragma once

#include <optional>

#include "cost/model.hpp"
#include "cost/sm.hpp"

// Products of matrices by the shipped kernels.
namespace stof::cost {

// Nothing for other templates. Without launch, start and dram, which all kernels share.
std::optional<Prediction> predict_product(const Sm& sm, const Problem& problem,
                                          const kernel::KernelConfig& config);

// See Model::settings.
std::vector<kernel::KernelConfig> product_settings(const Sm& sm, const Problem& problem);

}  // namespace stof::cost
