#pragma once

#include "graph/ir.hpp"

namespace stof::graph {

// The graph in primitive operators, which means the same:
//
//   linear     matmul (transposed where the weight lies (out, in)), then add where there is a bias
//   attention  matmul, scale, score where there is one, mask, softmax, matmul, in one new segment
//
// Scores are float32 from the first matmul on (its attribute `dtype`), and the second one returns
// to the dtype of the attention. Query heads that share keys are the attribute `group` of both
// matmuls; kv_lengths and the data of run-time masks are inputs of mask, which is there in any
// case; the log-sum-exp is the second output of softmax. Everything else stays, with inputs and
// weights first; what a composite gives keeps its name. normalise(normalise(g)) is normalise(g).
Ir normalise(const Ir& ir);

// The same with attention left whole, for kernels that do all of it, and with a broadcast ahead of
// operands for which strides alone may not do: of products, those that some of the leading axes of
// the result leave constant; of elementwise operators, those over more than four axes.
Ir normalise_but_attention(const Ir& ir);

}  // namespace stof::graph
