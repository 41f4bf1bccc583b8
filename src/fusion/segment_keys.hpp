#pragma once

#include <cstdint>
#include <limits>
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
  SegmentKeys(const graph::Ir& ir, const OperatorOrder& order, const Readers& readers,
              const Placement& placement);

  base::Digest key(const Segment& segment) const;

  // The keys of the segments that begin at one place, each an operator longer than the last.
  class From {
   public:
    // The keys are used for as long as this lives.
    From(const SegmentKeys& keys, int begin) : keys_(keys), begin_(begin), end_(begin) {}

    void add();  // the next operator
    base::Digest key() const;

   private:
    const SegmentKeys& keys_;
    int begin_;
    int end_;
    base::Digest read_;  // all but what is read outside
  };

 private:
  // An operator by itself: it mentions the values that it reads, each with the value of which it is
  // a view, and those that it makes.
  struct Place {
    base::Digest digest;            // what it means, and how these values lie
    int first_mention = 0;          // of all, in order
    std::vector<int> same_as;       // of each mention: the last one before of that value, or -1
    std::vector<int> last_readers;  // of each result: the place, or kOutside
  };
  static constexpr int kOutside = std::numeric_limits<int>::max();  // an output, or read by a view

  base::Digest lie_of(const graph::Ir& ir, const Placement& placement, int value);

  std::vector<Place> places_;
  std::vector<base::Digest> lies_;  // of values: how they lie in memory
  std::vector<bool> is_known_;
};

}  // namespace stof::fusion
