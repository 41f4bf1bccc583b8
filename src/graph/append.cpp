#include "graph/append.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::graph {

namespace {

constexpr std::size_t kMaxNameLength = 256;

std::string quoted(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 40)) {
    const bool is_printable = c >= ' ' && c <= '~';
    text +=
        is_printable ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return fmt::format("\"{}\"{}", text, name.size() > 40 ? "..." : "");
}

std::map<std::string, Dim> symbols_of(const Ir& ir, std::string_view what, const Shape& shape) {
  std::map<std::string, Dim> found;
  for (const Dim& extent : shape.dims()) {
    for (const auto& [name, range] : extent.symbols()) {
      const auto known = ir.dims.find(name);
      const Dim symbol = Dim::symbol(name, range.first, range.second);
      if (known != ir.dims.end() && !(known->second == symbol)) {
        throw GraphError(
            fmt::format("{}: dim {} has the range [{}, {}] here, [{}, {}] in this graph", what,
                        name, range.first, range.second, known->second.min(), known->second.max()));
      }
      found.emplace(name, symbol);
    }
  }
  return found;
}

std::string result_name(const Ir& ir, OpKind kind) {
  std::string result = fmt::format("{}_{}", name(kind), ir.values.size());
  while (ir.ids.contains(result)) {
    result += '_';
  }
  return result;
}

int push(Ir& ir, Value value) {
  const int id = static_cast<int>(ir.values.size());
  ir.ids.emplace(value.name, id);
  ir.values.push_back(std::make_shared<const Value>(std::move(value)));
  return id;
}

}  // namespace

int append_value(Ir& ir, Value value) {
  const std::string_view role = name(value.role);
  check_name(role, value.name);
  const std::string what = fmt::format("{} {}", role, value.name);
  if (ir.ids.contains(value.name)) {
    throw GraphError(fmt::format("{}: the graph has a tensor of this name already", what));
  }
  if (static_cast<int>(value.dtype) > static_cast<int>(DType::Bool)) {
    throw GraphError(fmt::format("{}: unknown dtype {}", what, static_cast<int>(value.dtype)));
  }
  if (value.layout != WeightLayout::OutIn && value.layout != WeightLayout::InOut) {
    throw GraphError(fmt::format("{}: unknown layout {}", what, static_cast<int>(value.layout)));
  }
  check_shape(what, value.shape);
  if (value.role == ValueRole::Weight && !value.shape.is_static()) {
    throw GraphError(fmt::format("{}: {} is symbolic, a weight has one shape for good", what,
                                 value.shape.text()));
  }
  declare_dims(ir, what, value.shape);
  return push(ir, std::move(value));
}

std::vector<int> append(Ir& ir, Operator op, std::span<const std::string> names) {
  const Shape extents(attribute_extents(op));
  symbols_of(ir, name(op.kind), extents);  // a conflict is found before the extents meet others
  const std::vector<TensorType> types = infer(ir, op);
  declare_dims(ir, name(op.kind), extents);
  STOF_CHECK(names.empty() || names.size() == types.size()) << name(op.kind);
  for (std::size_t i = 0; i < types.size(); ++i) {
    STOF_CHECK(names.empty() || !ir.ids.contains(names[i])) << names[i];
    op.outputs[i] = push(ir, {.name = names.empty() ? result_name(ir, op.kind) : names[i],
                              .shape = types[i].shape,
                              .dtype = types[i].dtype,
                              .role = ValueRole::Result,
                              .producer = static_cast<int>(ir.operators.size())});
  }
  ir.operators.push_back(std::move(op));
  return ir.operators.back().outputs;
}

int append_one(Ir& ir, Operator op) {
  op.outputs = {-1};
  return append(ir, std::move(op)).front();
}

void append_output(Ir& ir, const std::string& name, int value) {
  check_name("output", name);
  if (std::ranges::find(ir.outputs, name, &Output::name) != ir.outputs.end()) {
    throw GraphError(fmt::format("output {}: the graph has an output of this name already", name));
  }
  ir.outputs.push_back({.name = name, .value = value});
}

void check_complete(const Ir& ir) {
  if (ir.outputs.empty()) {
    throw GraphError(fmt::format("graph {}: it has no output; Graph::output names one", ir.name));
  }
}

void declare_dims(Ir& ir, std::string_view what, const Shape& shape) {
  for (auto& [name, symbol] : symbols_of(ir, what, shape)) {
    ir.dims.emplace(name, symbol);
  }
}

void check_name(std::string_view what, std::string_view name) {
  const bool is_printable = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  if (name.empty() || name.size() > kMaxNameLength || !is_printable) {
    throw GraphError(fmt::format("{}: the name {} is not 1 to {} printable ASCII characters", what,
                                 quoted(name), kMaxNameLength));
  }
}

int find_value(const Ir& ir, std::string_view name) {
  const auto found = ir.ids.find(name);
  return found == ir.ids.end() ? -1 : found->second;
}

}  // namespace stof::graph
