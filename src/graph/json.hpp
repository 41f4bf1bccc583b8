#pragma once

#include <map>
#include <string>
#include <string_view>

#include "graph/ir.hpp"
#include "stof/tensor.hpp"

// The text form of graphs. Fields come in this order, `attributes`, `captures` and `segment` where
// there are any; a value's id is its place in `values`:
//
//   {"schema": 1, "name": "layer", "dims": {"seq": {"min": 1, "max": 2048}},
//    "values": [{"name": "x", "role": "input", "dtype": "float16", "shape": [8, "seq", 768]},
//               {"name": "w", "role": "weight", "dtype": …, "shape": …, "layout": "out_in"},
//               {"name": "linear_2", "role": "result", "dtype": …, "shape": …}],
//    "operators": [{"op": "linear", "inputs": [0, 1], "outputs": [2], "attributes": {…},
//                   "captures": {"slope": 3}, "segment": 0}],
//    "outputs": [{"name": "y", "value": 2}]}
//
// An absent input is null. Extents are integers or texts such as "2 * seq + 1"; masks and scores
// are as in mask/json.hpp.
namespace stof::graph {

inline constexpr int kJsonSchema = 1;

struct SavedIr {
  std::string json;
  std::map<std::string, HostTensor> data;  // by digest
};

SavedIr to_json(const Ir& ir);

// Whatever the text, this gives a graph that satisfies every rule of the builder, or throws
// GraphError that names the place, what is there and what was expected. Time and memory are
// proportional to the size of the text and the data.
Ir from_json(std::string_view json, const std::map<std::string, HostTensor>& data);

}  // namespace stof::graph
