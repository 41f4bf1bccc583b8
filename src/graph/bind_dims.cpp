#include "graph/bind_dims.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "graph/infer.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::graph {

namespace {

void check_values(const Ir& ir, const DimValues& values) {
  for (const auto& [name, dim] : ir.dims) {
    const auto found = values.find(name);
    if (found == values.end()) {
      throw GraphError(fmt::format("bind: dim {} has no value, dims must give one in [{}, {}]",
                                   name, dim.min(), dim.max()));
    }
    if (found->second < dim.min() || found->second > dim.max()) {
      throw GraphError(fmt::format("bind: dim {} is {}, not in [{}, {}]", name, found->second,
                                   dim.min(), dim.max()));
    }
  }
  for (const auto& [name, value] : values) {
    if (!ir.dims.contains(name)) {
      throw GraphError(fmt::format("bind: the graph {} has no dim {}", ir.name, name));
    }
  }
}

Shape bound(const Shape& shape, const DimValues& values) {
  return Shape::of(shape.sizes(values));
}

}  // namespace

Ir bind_dims(const Ir& ir, const DimValues& values) {
  check_values(ir, values);
  Ir result = ir;
  result.dims.clear();
  for (std::shared_ptr<const Value>& value : result.values) {
    if (!value->shape.is_static()) {
      Value with_sizes = *value;
      with_sizes.shape = bound(value->shape, values);
      value = std::make_shared<const Value>(std::move(with_sizes));
    }
  }
  for (Operator& op : result.operators) {
    for (auto& [name, attribute] : op.attributes) {
      if (auto* dim = std::get_if<Dim>(&attribute)) {
        *dim = Dim(dim->value(values));
      } else if (auto* shape = std::get_if<Shape>(&attribute)) {
        *shape = bound(*shape, values);
      }
    }
    const std::vector<TensorType> types = infer(result, op);
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Value& value = *result.values[static_cast<std::size_t>(op.outputs[i])];
      STOF_CHECK(types[i].shape == value.shape)
          << name(op.kind) << " gives " << types[i].shape.text() << ", not " << value.shape.text();
    }
  }
  return result;
}

}  // namespace stof::graph
