#pragma once

#include "fusion/mask_arrays.hpp"
#include "graph/ir.hpp"

namespace stof::fusion {

// Attentions whose masks let a query see only the keys that are a multiple of n positions away, as
// dilated and strided ones do: n attentions side by side, of every n-th query and key each, whose
// masks have no gaps. They become one attention on views of the same memory, with a head for each
// of the n and the batch elements and heads there were as its batch. Not where that leaves nearly
// as many tiles as before, where a view, or what reads the output, would need a copy, nor where
// keys have lengths of their own, a score is modified or the output of log-sum-exps is wanted.
// Shapes are static.
graph::Ir with_residue_classes(graph::Ir ir, MaskArraysByMask& masks);

}  // namespace stof::fusion
