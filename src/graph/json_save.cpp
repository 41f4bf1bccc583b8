#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/json.hpp"
#include "graph/op_info.hpp"
#include "mask/json.hpp"
#include "stof/graph.hpp"

namespace stof {

Graph::Saved Graph::to_json() const {
  graph::SavedIr saved = graph::to_json(*ir_);
  return {.json = std::move(saved.json), .data = std::move(saved.data)};
}

}  // namespace stof

namespace stof::graph {

namespace {

using Json = nlohmann::ordered_json;
using Data = std::map<std::string, HostTensor>;

Json extent(const Dim& dim) {
  return dim.is_static() ? Json(dim.value()) : Json(dim.text());
}

Json extents(const Shape& shape) {
  Json result = Json::array();
  for (const Dim& dim : shape.dims()) {
    result.push_back(extent(dim));
  }
  return result;
}

// Sorted by key, so canonical as it is.
Json take(mask::Saved saved, Data& data) {
  data.merge(saved.tensors);
  return Json(saved.json);
}

class AttributeSaver {
 public:
  explicit AttributeSaver(Data& data) : data_(data) {}

  Json operator()(bool value) const { return value; }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(double value) const { return value; }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const std::vector<std::int64_t>& values) const { return values; }
  Json operator()(DType value) const { return name(value); }
  Json operator()(const Dim& value) const { return extent(value); }
  Json operator()(const Shape& value) const { return extents(value); }
  Json operator()(const stof::Mask& value) const { return take(mask::save_mask(value), data_); }
  Json operator()(const stof::Expr& value) const {
    return take(mask::save_expression(value), data_);
  }

 private:
  Data& data_;
};

Json save(const Value& value) {
  Json json;
  json["name"] = value.name;
  json["role"] = name(value.role);
  json["dtype"] = name(value.dtype);
  json["shape"] = extents(value.shape);
  if (value.role == ValueRole::Weight) {
    json["layout"] = name(value.layout);
  }
  return json;
}

Json save(const Operator& op, Data& data) {
  Json json;
  json["op"] = name(op.kind);
  json["inputs"] = Json::array();
  for (const int id : op.inputs) {
    json["inputs"].push_back(id < 0 ? Json() : Json(id));
  }
  json["outputs"] = op.outputs;
  for (const AttributeInfo& info : op_info(op.kind).attributes) {
    const auto found = op.attributes.find(std::string(info.name));
    if (found != op.attributes.end()) {
      json["attributes"][found->first] = std::visit(AttributeSaver(data), found->second);
    }
  }
  for (const auto& [capture, id] : op.captures) {
    json["captures"][capture] = id;
  }
  if (op.segment >= 0) {
    json["segment"] = op.segment;
  }
  return json;
}

// One element a line, so that a change of one is a change of a line.
std::string lines(const std::vector<std::string>& elements) {
  return elements.empty() ? "[]" : fmt::format("[\n  {}\n ]", fmt::join(elements, ",\n  "));
}

}  // namespace

SavedIr to_json(const Ir& ir) {
  SavedIr saved;
  Json dims = Json::object();
  for (const auto& [symbol, dim] : ir.dims) {
    dims[symbol] = {{"min", dim.min()}, {"max", dim.max()}};
  }
  std::vector<std::string> values;
  for (const auto& value : ir.values) {
    values.push_back(save(*value).dump());
  }
  std::vector<std::string> operators;
  for (const Operator& op : ir.operators) {
    operators.push_back(save(op, saved.data).dump());
  }
  std::vector<std::string> outputs;
  for (const Output& output : ir.outputs) {
    outputs.push_back(Json{{"name", output.name}, {"value", output.value}}.dump());
  }
  saved.json = fmt::format(
      "{{\n \"schema\": {},\n \"name\": {},\n \"dims\": {},\n \"values\": {},\n \"operators\": "
      "{},\n "
      "\"outputs\": {}\n}}\n",
      kJsonSchema, Json(ir.name).dump(), dims.dump(), lines(values), lines(operators),
      lines(outputs));
  return saved;
}

}  // namespace stof::graph
