#pragma once

#include <optional>
#include <vector>

#include "graph/ir.hpp"
#include "reference/array.hpp"

namespace stof::reference {

struct BoundInputs {
  DimValues dims;                                 // of every symbol that is known
  std::vector<std::optional<Array>> values = {};  // by id; inputs and weights are there
};

// Checks what the caller gave against the graph. Throws GraphError as run() says.
BoundInputs bind_inputs(const graph::Ir& ir, const Tensors& tensors, const Options& options);

}  // namespace stof::reference
