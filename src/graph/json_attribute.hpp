#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "graph/ir.hpp"
#include "graph/json_place.hpp"
#include "graph/op_info.hpp"

namespace stof::graph {

// Reads attributes, shapes and dtypes. Equal masks of one document share their data.
class AttributeLoader {
 public:
  AttributeLoader(const std::map<std::string, Dim>& dims,
                  const std::map<std::string, HostTensor>& data);

  Dim dim(const Place& place) const;
  Shape shape(const Place& place) const;
  DType dtype(const Place& place) const;
  std::map<std::string, Attribute> load(const Place& place, const OpInfo& info);

 private:
  Attribute load(const Place& place, AttributeType type);
  Mask mask(const Place& place);
  Expr expression(const Place& place);
  void count_data(const Place& place, const nlohmann::json& value);

  const std::map<std::string, Dim>& dims_;
  const std::map<std::string, HostTensor>& data_;
  std::map<std::string, Mask> masks_;  // by JSON text
  std::map<std::string, Expr> expressions_;
  std::size_t data_bytes_ = 0;  // that masks and expressions have copied
};

}  // namespace stof::graph
