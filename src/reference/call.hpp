#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.hpp"
#include "reference/array.hpp"

namespace stof::reference {

class VisibleKeysCache;

struct ResultType {
  DType dtype = DType::Float32;
  Sizes shape;
};

// One operator with the arrays that it reads and what it is to make.
struct Call {
  const graph::Ir& ir;
  const graph::Operator& op;
  const Options& options;
  VisibleKeysCache& visible_keys;
  std::vector<std::optional<Array>> inputs = {};
  std::map<std::string, Array> captures = {};
  std::vector<ResultType> results = {};

  bool has_input(std::size_t position) const {
    return position < inputs.size() && inputs[position].has_value();
  }
  const Array& input(std::size_t position) const { return inputs.at(position).value(); }
  Array wide_input(std::size_t position) const { return widened(input(position), options); }

  Array result(std::vector<double> values, std::size_t position = 0) const {
    const ResultType& type = results.at(position);
    return make_array(type.dtype, type.shape, std::move(values), options);
  }
};

}  // namespace stof::reference
