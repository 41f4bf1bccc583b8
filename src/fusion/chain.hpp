#pragma once

#include <string>
#include <vector>

#include "fusion/match.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

bool is_elementwise(graph::OpKind kind);

// One operator of a chain. Operands are values of the graph: the one that the chain is about, those
// that earlier statements gave, and other tensors.
struct Statement {
  int op = -1;  // index of the operator
  std::vector<int> operands;
  int result = -1;
};

// Elementwise operators that a kernel applies to a value before it is written. Each reads the
// result of the one before it, but for what moments make of another tensor of the same shape, which
// the next one that does reads too. All their results have the shape of that value.
struct Chain {
  int value = -1;
  std::vector<Statement> statements;

  int result() const { return statements.empty() ? value : statements.back().result; }
};

// The chain grown by the only reader of its result, where there is one that fits. Whether the other
// operands are there in time is for the caller to see.
bool grow(Chain& chain, const graph::Ir& ir, const Readers& readers,
          const std::vector<bool>& is_free);

// What a chain reads besides its value, each once, in order of first use.
std::vector<int> other_operands(const Chain& chain);

}  // namespace stof::fusion
