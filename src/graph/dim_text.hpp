#pragma once

#include <map>
#include <string>
#include <string_view>

#include "stof/tensor.hpp"

namespace stof::graph {

// What an extent's text() says, where `symbols` gives the dims by name: sums and differences of
// products of integers and names. Throws GraphError that names the column.
Dim parse_dim(std::string_view text, const std::map<std::string, Dim>& symbols);

}  // namespace stof::graph
