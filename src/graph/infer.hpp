#pragma once

#include <string>
#include <vector>

#include "graph/ir.hpp"

namespace stof::graph {

inline constexpr int kMaxRank = 8;            // more axes than any operator of a Transformer has
inline constexpr int kMaxExtentLength = 512;  // of the text of an extent

struct TensorType {
  Shape shape;
  DType dtype = DType::Float32;
};

// What an operator gives for the values that it reads, as many as it has outputs (whose ids do not
// matter yet). Throws GraphError that names operator, shapes and rule where its inputs, attributes,
// captures or their shapes and dtypes do not fit.
std::vector<TensorType> infer(const Ir& ir, const Operator& op);

// Throws GraphError, which begins with `what`, where no tensor can have this shape: rank over
// kMaxRank, an extent that may be negative or is over kMaxExtentLength, over 2^60 elements.
void check_shape(const std::string& what, const Shape& shape);

// a and b as NumPy broadcasts them; symbolic extents must be equal or meet a 1. Nothing where they
// do not fit.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

}  // namespace stof::graph
