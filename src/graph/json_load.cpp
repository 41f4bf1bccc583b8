#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/append.hpp"
#include "graph/dim_text.hpp"
#include "graph/infer.hpp"
#include "graph/json.hpp"
#include "graph/json_attribute.hpp"
#include "graph/json_place.hpp"
#include "graph/op_info.hpp"
#include "graph/segments.hpp"
#include "stof/graph.hpp"

namespace stof {

Graph Graph::from_json(std::string_view json, const std::map<std::string, HostTensor>& data) {
  return Graph(graph::from_json(json, data));
}

}  // namespace stof

namespace stof::graph {

namespace {

constexpr std::size_t kMaxValues = 1 << 24;

// What is expected in place of a name that no operator has.
std::string an_operator(std::string_view name) {
  const std::string nearest = nearest_op_name(name);
  return nearest.empty() ? "the name of an operator"
                         : fmt::format("the name of an operator; did you mean {}?", nearest);
}

class Loader {
 public:
  explicit Loader(const std::map<std::string, HostTensor>& data) : attributes_(ir_.dims, data) {}

  Ir load(const Place& document) {
    document.allow({"schema", "name", "dims", "values", "operators", "outputs"});
    const Place schema = document.field("schema");
    if (schema.integer() != kJsonSchema) {
      schema.expected(fmt::format("schema {}", kJsonSchema));
    }
    const Place name = document.field("name");
    ir_.name = name.string();
    name.guard([&] { check_name("graph", ir_.name); });
    load_dims(document.field("dims"));
    load_values(document.field("values"));
    const Place operators = document.field("operators");
    for (std::size_t i = 0; i < operators.size(); ++i) {
      load_operator(operators.element(i));
    }
    check_all_made(document.field("values"));
    operators.guard([&] { check_segments(ir_); });
    load_outputs(document.field("outputs"));
    return std::move(ir_);
  }

 private:
  void load_dims(const Place& dims) {
    if (!dims.value().is_object()) {
      dims.expected("an object");
    }
    for (const auto& [name, unused] : dims.value().items()) {
      const std::string& symbol = name;
      const Place dim = dims.field(symbol);
      dim.allow({"min", "max"});
      const std::int64_t min = dim.field("min").integer();
      const std::int64_t max = dim.field("max").integer();
      ir_.dims.emplace(symbol, dim.guard([&] { return Dim::symbol(symbol, min, max); }));
    }
  }

  void load_values(const Place& places) {
    if (places.size() > kMaxValues) {
      places.expected(fmt::format("at most {} values", kMaxValues));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Place place = places.element(i);
      const Value loaded = load_value(place);
      place.guard([&] { append_value(ir_, loaded); });
    }
    is_made_.reserve(ir_.values.size());
    for (const auto& loaded : ir_.values) {
      is_made_.push_back(loaded->role != ValueRole::Result);
    }
  }

  Value load_value(const Place& place) const {
    place.allow({"name", "role", "dtype", "shape", "layout"});
    Value loaded{.name = place.field("name").string(),
                 .shape = attributes_.shape(place.field("shape")),
                 .dtype = attributes_.dtype(place.field("dtype"))};
    const std::optional<ValueRole> role = role_from_name(place.field("role").string());
    if (!role) {
      place.field("role").expected("input, weight or result");
    }
    loaded.role = *role;
    if (loaded.role == ValueRole::Weight) {
      const std::optional<WeightLayout> layout = layout_from_name(place.field("layout").string());
      if (!layout) {
        place.field("layout").expected("out_in or in_out");
      }
      loaded.layout = *layout;
    } else if (place.has("layout")) {
      place.field("layout").expected("none, of what is no weight");
    }
    return loaded;
  }

  void load_operator(const Place& place) {
    place.allow({"op", "inputs", "outputs", "attributes", "captures", "segment"});
    const Place name = place.field("op");
    const std::optional<OpKind> kind = op_kind_from_name(name.string());
    if (!kind) {
      name.expected(an_operator(name.string()));
    }
    Operator op{.kind = *kind};
    const Place inputs = place.field("inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Place input = inputs.element(i);
      op.inputs.push_back(input.value().is_null() ? -1 : operand(input));
    }
    if (place.has("attributes")) {
      op.attributes = attributes_.load(place.field("attributes"), op_info(*kind));
    }
    if (place.has("captures")) {
      load_captures(place.field("captures"), op);
    }
    if (place.has("segment")) {
      op.segment = static_cast<int>(
          place.field("segment").integer(0, std::numeric_limits<std::int32_t>::max()));
    }
    load_results(place.field("outputs"), op);
    check_results(place, op);
    ir_.operators.push_back(std::move(op));
  }

  void load_captures(const Place& captures, Operator& op) const {
    if (!captures.value().is_object()) {
      captures.expected("an object");
    }
    for (const auto& [name, unused] : captures.value().items()) {
      op.captures.emplace(name, operand(captures.field(name)));
    }
  }

  int id(const Place& place) const {
    if (ir_.values.empty()) {
      place.expected("no id, as there are no values");
    }
    return static_cast<int>(place.integer(0, std::ssize(ir_.values) - 1));
  }

  int operand(const Place& place) const {
    const int found = id(place);
    if (!is_made_[static_cast<std::size_t>(found)]) {
      place.expected("a value that an earlier operator makes, an input or a weight");
    }
    return found;
  }

  void load_results(const Place& outputs, Operator& op) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Place output = outputs.element(i);
      const int found = id(output);
      if (is_made_[static_cast<std::size_t>(found)]) {
        output.expected("a result that nothing else makes");
      }
      is_made_[static_cast<std::size_t>(found)] = true;
      op.outputs.push_back(found);
      auto& value = ir_.values[static_cast<std::size_t>(found)];
      Value made = *value;
      made.producer = static_cast<int>(ir_.operators.size());
      value = std::make_shared<const Value>(std::move(made));
    }
  }

  void check_results(const Place& place, const Operator& op) const {
    const std::vector<TensorType> types = place.guard([&] { return infer(ir_, op); });
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Value& value = *ir_.values[static_cast<std::size_t>(op.outputs[i])];
      if (!(value.shape == types[i].shape)) {
        throw GraphError(fmt::format("/values/{}/shape: found {}, expected {}, which {} gives",
                                     op.outputs[i], value.shape.text(), types[i].shape.text(),
                                     place.where()));
      }
      if (value.dtype != types[i].dtype) {
        throw GraphError(fmt::format("/values/{}/dtype: found {}, expected {}, which {} gives",
                                     op.outputs[i], name(value.dtype), name(types[i].dtype),
                                     place.where()));
      }
    }
  }

  void check_all_made(const Place& values) const {
    for (std::size_t i = 0; i < is_made_.size(); ++i) {
      if (!is_made_[i]) {
        values.element(i).fail("no operator makes this result");
      }
    }
  }

  void load_outputs(const Place& outputs) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Place output = outputs.element(i);
      output.allow({"name", "value"});
      const Place name = output.field("name");
      name.guard([&] { check_name("output", name.string()); });
      if (!names.insert(name.string()).second) {
        name.expected("a name that no other output has");
      }
      ir_.outputs.push_back({.name = name.string(), .value = id(output.field("value"))});
    }
  }

  Ir ir_;
  std::vector<bool> is_made_;  // of values: no result, or made by an operator that was read
  AttributeLoader attributes_;
};

}  // namespace

Ir from_json(std::string_view json, const std::map<std::string, HostTensor>& data) {
  const nlohmann::json document = parse_json(json);
  return Loader(data).load(Place(document, ""));
}

}  // namespace stof::graph
