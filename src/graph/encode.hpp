#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "graph/ir.hpp"

namespace stof::graph {

// What an operator reads: its inputs but for absent ones, then its captures, in the order in which
// the mask and then the score first name them.
std::vector<int> operand_ids(const Operator& op);

// What stands for values and extents where an operator is hashed without names.
struct Encoding {
  std::function<std::uint64_t(int id)> value;
  std::function<std::string(const Dim& dim)> dim;
};

// Adds all that an operator means: kind, inputs, attributes with captures as values and tables as
// data, number of results; neither its name nor its segment.
void encode(base::Hasher& hasher, const Operator& op, const Encoding& encoding);

// Adds an input or weight.
void encode(base::Hasher& hasher, const Value& value, const Encoding& encoding);

}  // namespace stof::graph
