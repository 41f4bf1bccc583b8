#pragma once

#include "fusion/scheme.hpp"

namespace stof::testing {

inline bool no_escape(const fusion::Segment& /*segment*/, int /*place*/) {
  return false;
}

// The fifteen operators of a BERT layer as the paper numbers them (figures 7 and 8): 0 QKV product,
// 1 bias, 2 to 6 attention, 7 output product, 8 bias and residual, 9 LayerNorm, 10 first product of
// the FFN, 11 bias and activation, 12 second product, 13 bias and residual, 14 LayerNorm.
inline fusion::OperatorOrder bert_layer_of_the_paper() {
  fusion::OperatorOrder order(15);
  for (int place = 0; place < 15; ++place) {
    fusion::SchemeOperator& one = order[static_cast<std::size_t>(place)];
    one.op = place;
    one.is_attention = place >= 2 && place <= 6;
    one.pinned = one.is_attention ? 0 : -1;
    if (place > 0) {
      one.reads = {place - 1};
      order[static_cast<std::size_t>(place) - 1].readers = {place};
    }
  }
  for (const int place : {0, 2, 6, 7, 10, 12}) {
    order[static_cast<std::size_t>(place)].is_compute_intensive = true;
  }
  order[13].reads.insert(order[13].reads.begin(), 9);  // the residual
  order[9].readers.push_back(13);
  order[14].is_output = true;
  return order;
}

}  // namespace stof::testing
