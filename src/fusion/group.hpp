#pragma once

#include <vector>

#include "fusion/chain.hpp"
#include "fusion/match.hpp"
#include "fusion/template_library.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// One template that may run a group, and where its pattern lies.
struct Candidate {
  const KernelTemplate* kernel = nullptr;
  Match match;
};

// Operators that one kernel runs: a pattern, and a chain behind it for the hook. An elementwise
// group is a chain alone, for templates of "y = copy(x)": their x is the chain's value. A concat is
// a copy of each of its parts.
struct Group {
  std::vector<int> operators;
  std::vector<Candidate> candidates;  // structural matches, the largest patterns only
  Chain chain;                        // its value: what the hook sees
};

// The templates of "y = copy(x)". Throws GraphError where there is none.
std::vector<Candidate> copy_candidates(const TemplateLibrary& templates);

// Cuts a graph (see normalise_but_attention) into groups, in an order in which they can run; views
// belong to none. Compute-intensive operators and attention take the chains behind them, then
// normalisations the additions in front of them and the chains behind; what is left goes alone or
// in chains. Throws GraphError for an operator that no pattern has.
std::vector<Group> make_groups(const graph::Ir& ir, const TemplateLibrary& templates);

}  // namespace stof::fusion
