#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fusion/deferred_norms.hpp"
#include "stof/tensor.hpp"

namespace stof::fusion {

struct FoldedTensors {
  HostTensor weight;
  std::optional<HostTensor> offset;
  // Why a product of them would not be as exact as the norm ahead of it; empty: it is.
  std::string fault;
};

// Makes the tensors of a folded product; tensor_of gives the weights that it is made of, by name.
// Sums are in float64. Roundings of a centred column are carried on to its next element, so that
// they cancel in its sum.
FoldedTensors fold_product(const FoldedProduct& folded,
                           const std::function<HostTensor(const std::string&)>& tensor_of);

}  // namespace stof::fusion
