#include "graph/dump.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/op_info.hpp"
#include "stof/graph.hpp"

namespace stof {

std::string Graph::dump() const {
  return graph::dump(*ir_);
}

}  // namespace stof

namespace stof::graph {

namespace {

std::string type_text(const Value& value) {
  return fmt::format("{}{}", name(value.dtype), value.shape.text());
}

std::string text(bool value) {
  return value ? "true" : "false";
}
std::string text(std::int64_t value) {
  return fmt::to_string(value);
}
std::string text(double value) {
  return fmt::to_string(value);
}
std::string text(const std::string& value) {
  return value;
}
std::string text(const std::vector<std::int64_t>& values) {
  return fmt::format("({})", fmt::join(values, ", "));
}
std::string text(DType value) {
  return std::string(name(value));
}
std::string text(const Dim& value) {
  return value.text();
}
std::string text(const Shape& value) {
  return value.text();
}
std::string text(const stof::Mask& value) {
  return value.text();
}
std::string text(const stof::Expr& value) {
  return value.text();
}

std::string arguments_text(const Operator& op) {
  std::vector<std::string> inputs;
  for (const int id : op.inputs) {
    inputs.push_back(id < 0 ? "-" : fmt::format("%{}", id));
  }
  std::vector<std::string> attributes;
  for (const AttributeInfo& info : op_info(op.kind).attributes) {
    const auto found = op.attributes.find(std::string(info.name));
    if (found == op.attributes.end()) {
      continue;
    }
    const bool* flag = std::get_if<bool>(&found->second);
    if (flag == nullptr || *flag) {
      attributes.push_back(
          fmt::format("{}={}", info.name,
                      std::visit([](const auto& value) { return text(value); }, found->second)));
    }
  }
  for (const auto& [capture, id] : op.captures) {
    attributes.push_back(fmt::format("{}=%{}", capture, id));
  }
  return fmt::format("{}{}{}", fmt::join(inputs, ", "), attributes.empty() ? "" : "; ",
                     fmt::join(attributes, ", "));
}

}  // namespace

std::string dump(const Ir& ir, const Operator& op) {
  std::vector<std::string> ids;
  std::vector<std::string> types;
  for (const int id : op.outputs) {
    ids.push_back(fmt::format("%{}", id));
    types.push_back(type_text(value_at(ir, id)));
  }
  return fmt::format("{} {}({}) : {}{}", fmt::join(ids, ", "), name(op.kind), arguments_text(op),
                     fmt::join(types, ", "),
                     op.segment < 0 ? "" : fmt::format("  # segment {}", op.segment));
}

std::string dump(const Ir& ir) {
  std::string result = fmt::format("graph {}\n", ir.name);
  for (const auto& [symbol, dim] : ir.dims) {
    result += fmt::format("dim {} in [{}, {}]\n", symbol, dim.min(), dim.max());
  }
  for (std::size_t id = 0; id < ir.values.size(); ++id) {
    const Value& value = *ir.values[id];
    if (value.role != ValueRole::Result) {
      const bool is_in_out = value.role == ValueRole::Weight && value.layout == WeightLayout::InOut;
      result += fmt::format("%{} {} {} : {}{}\n", id,
                            value.role == ValueRole::Weight ? "weight" : "input", value.name,
                            type_text(value), is_in_out ? " (in, out)" : "");
    }
  }
  for (const Operator& op : ir.operators) {
    result += dump(ir, op) + '\n';
  }
  for (const Output& output : ir.outputs) {
    result += fmt::format("output {} = %{}\n", output.name, output.value);
  }
  return result;
}

}  // namespace stof::graph
