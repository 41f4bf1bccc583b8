#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "fusion/joined_products.hpp"
#include "fusion/lower.hpp"
#include "fusion/lowering_testing.hpp"
#include "reference/testing.hpp"

namespace stof::testing {

// Makes joined weights of their parts.
inline void add_joined(HostTensors& tensors, const std::vector<fusion::JoinedWeight>& joined) {
  for (const fusion::JoinedWeight& weight : joined) {
    std::vector<std::int64_t> shape = tensors.at(weight.parts.front()).shape();
    shape[0] = 0;
    for (const std::string& part : weight.parts) {
      shape[0] += tensors.at(part).shape()[0];
    }
    HostTensor whole(tensors.at(weight.parts.front()).dtype(), shape);
    auto end = whole.bytes().begin();
    for (const std::string& part : weight.parts) {
      end = std::ranges::copy(tensors.at(part).bytes(), end).out;
    }
    tensors[weight.name] = std::move(whole);
  }
}

// Of all launches, by the model.
inline double total_us(const graph::Ir& ir) {
  double us = 0;
  for (const auto& options :
       fusion::lower(ir, shipped_templates(), base::shipped_profile("h200")).options) {
    us += options.front().time.total_us();
  }
  return us;
}

}  // namespace stof::testing
