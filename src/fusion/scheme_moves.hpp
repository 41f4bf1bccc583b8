#pragma once

#include <vector>

#include "fusion/scheme.hpp"

namespace stof::fusion {

// The paper's moves. Each gives the legal schemes that are one move away, the leftmost first, and
// none that equals the scheme given.

// Two neighbouring segments become one; all others stay.
std::vector<Scheme> expand(const OperatorOrder& order, const Scheme& scheme,
                           const MayEscape& may_escape);
// A segment with a compute-intensive operator takes the nearest operator of a neighbour without.
std::vector<Scheme> seize(const OperatorOrder& order, const Scheme& scheme,
                          const MayEscape& may_escape);
// A single operator that is not compute-intensive, between two segments that have one, goes to
// either: first to the one that has fewer of them, and of equals to the left one.
std::vector<Scheme> compete(const OperatorOrder& order, const Scheme& scheme,
                            const MayEscape& may_escape);

}  // namespace stof::fusion
