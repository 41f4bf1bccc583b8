#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.hpp"
#include "fusion/match.hpp"
#include "fusion/placement.hpp"
#include "fusion/scheme.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Names what a segment is without looking at kernels: segments of one key have equal problems. It
// is made of what the operators mean, how what they read lies in memory, which of them reads which,
// and what is read outside. The reverse need not hold: one problem may have several keys.
class SegmentKeys {
 public:
  SegmentKeys(const graph::Ir& ir, const OperatorOrder& order, const Placement& placement);

  base::Digest key(const Segment& segment) const;

 private:
  // A tensor that an operator reads, and the value of which it is a view, or itself.
  struct Operand {
    int value = -1;
    int root = -1;
  };
  struct Result {
    int value = -1;
    bool is_output = false;
    std::vector<int> readers;  // their places; -1 for views
  };
  struct Place {
    base::Digest meaning;
    std::vector<Operand> operands;
    std::vector<Result> results;
  };

  base::Digest lie_of(const graph::Ir& ir, const Placement& placement, int value);
  int root_of(const graph::Ir& ir, int value) const;

  std::vector<Place> places_;
  std::vector<base::Digest> lies_;  // of values: how they lie in memory
  std::vector<bool> is_known_;
};

}  // namespace stof::fusion
