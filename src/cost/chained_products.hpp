#pragma once

#include <string_view>
#include <vector>

#include "cost/model.hpp"
#include "cost/sm.hpp"

// Two products in one launch, chain_sm80 and chain_sm90, and with a gated layer in front,
// gated_chain_sm80 and gated_chain_sm90.
namespace stof::cost {

bool is_chain(std::string_view name);

// Without launch, start and dram, as predict_product.
Prediction predict_chain(const Sm& sm, const Problem& problem, const kernel::KernelConfig& config);

// See Model::settings.
std::vector<kernel::KernelConfig> chain_settings(const Problem& problem);

}  // namespace stof::cost
