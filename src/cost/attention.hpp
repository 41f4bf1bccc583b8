#pragma once

#include "cost/model.hpp"
#include "cost/sm.hpp"

namespace stof::cost {

// Attention over tiles or rows, without the launch, which all kernels share.
Prediction predict_attention(const Sm& sm, const Problem& problem,
                             const kernel::KernelConfig& config, const AttentionWork& work);

// Of a template by the name of its contract; in an order that says nothing.
std::vector<kernel::KernelConfig> attention_settings(const Problem& problem);

}  // namespace stof::cost
