#include "validate/pattern_graph.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "expr/evaluate.hpp"
#include "graph/append.hpp"
#include "graph/normalise.hpp"
#include "graph/op_info.hpp"
#include "stof/error.hpp"

namespace stof::validate {

using contract::PatternAttribute;
using contract::PatternStep;
using contract::Port;
using contract::TemplateContract;
using graph::OpKind;

namespace {

using Extents = std::vector<std::int64_t>;

constexpr double kFactor = 0.5;  // numbers that the pattern does not speak of

// Elements that lie before a strided row, and behind it: kernels may ask for multiples of 8.
constexpr std::int64_t kStrideBefore = 8;
constexpr std::int64_t kStrideBehind = 16;

bool is_reduction(OpKind kind) {
  return kind == OpKind::ReduceSum || kind == OpKind::ReduceMean || kind == OpKind::ReduceMax;
}

class Builder {
 public:
  Builder(const TemplateContract& contract, const PatternUse& use)
      : contract_(contract), use_(use) {
    ir_.name = contract.name;
  }

  graph::Ir run() && {
    for (std::size_t i = 0; i < contract_.pattern.size(); ++i) {
      add_step(i);
    }
    for (const Port& port : contract_.ports) {
      const auto made = made_.find(port.name);
      if (port.is_output && made != made_.end() && (use_.has_optional_ports || !port.is_optional)) {
        graph::append_output(ir_, port.name, made->second);
      }
    }
    return graph::normalise_but_attention(ir_);
  }

 private:
  void add_step(std::size_t place) {
    const PatternStep& step = contract_.pattern[place];
    if (use_.absent_steps.contains(place)) {
      values_[step.outputs.front()] = input(step.inputs.front(), {});
      return;
    }
    if (step.op == "copy") {
      add_copy(step);
      return;
    }
    const std::optional<OpKind> kind = graph::op_kind_from_name(step.op);
    if (!kind) {
      throw GraphError(fmt::format("pattern: there is no operator '{}'", step.op));
    }
    graph::Operator op{.kind = *kind};
    add_plain_attributes(op, step);
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      op.inputs.push_back(is_read(step.inputs[i]) ? input(step.inputs[i], {&op, i}) : -1);
    }
    while (!op.inputs.empty() && op.inputs.back() < 0) {
      op.inputs.pop_back();
    }
    add_shaped_attributes(op, step);
    if (op.kind == OpKind::MatMul && meets_float32(step.outputs.front())) {
      op.attributes["dtype"] = DType::Float32;
      is_wide_ = true;
    }
    op.outputs.push_back(-1);
    for (std::size_t i = 1; i < step.outputs.size() && is_given(step.outputs[i]); ++i) {
      op.outputs.push_back(-1);
    }
    const std::vector<int> results = graph::append(ir_, std::move(op));
    for (std::size_t i = 0; i < results.size(); ++i) {
      add_result(step.outputs[i], results[i]);
    }
  }

  // Whether a step has a product of 16 bits together with numbers of a row, which are float32: so
  // is the product then, and what comes of it is cast.
  bool meets_float32(const std::string& product) const {
    const auto is_float32 = [&](const std::string& name) {
      const Port* port = contract_.find_port(name);
      return port != nullptr && dtype_from_name(port->dtype) == DType::Float32;
    };
    return std::ranges::any_of(contract_.pattern, [&](const PatternStep& step) {
      return std::ranges::find(step.inputs, product) != step.inputs.end() &&
             std::ranges::any_of(step.inputs, is_float32);
    });
  }

  bool is_given(const std::string& output) const {
    const Port* port = contract_.find_port(output);
    return use_.has_optional_ports || port == nullptr || !port->is_optional;
  }

  // Inputs that only optional steps read are there where such a step is.
  bool is_read(const std::string& input) const {
    const Port* port = contract_.find_port(input);
    return use_.has_optional_ports || port == nullptr || !port->is_optional ||
           values_.contains(input) ||
           std::ranges::none_of(contract_.pattern, [&](const PatternStep& step) {
             return !step.is_optional && std::ranges::find(step.inputs, input) != step.inputs.end();
           });
  }

  void add_result(const std::string& name, int value) {
    const auto hook = contract_.hooks.find("epilogue");
    values_[name] = value;
    made_[name] = use_.has_epilogue && hook != contract_.hooks.end() && hook->second == name
                      ? with_epilogue(value)
                      : value;
    const Port* port = contract_.find_port(name);
    if (is_wide_ && port != nullptr && dtype_of(*port) != graph::value_at(ir_, value).dtype) {
      made_[name] = graph::append_one(ir_, {.kind = OpKind::Cast,
                                            .inputs = {made_[name]},
                                            .outputs = {-1},
                                            .attributes = {{"dtype", dtype_of(*port)}}});
    }
  }

  // gelu(value) + a tensor of its shape.
  int with_epilogue(int value) {
    const graph::Value of = graph::value_at(ir_, value);
    const int gelu =
        graph::append_one(ir_, {.kind = OpKind::Gelu, .inputs = {value}, .outputs = {-1}});
    const int other = graph::append_value(ir_, {.name = "epilogue_operand",
                                                .shape = of.shape,
                                                .dtype = of.dtype,
                                                .role = graph::ValueRole::Input});
    return graph::append_one(ir_, {.kind = OpKind::Add, .inputs = {gelu, other}, .outputs = {-1}});
  }

  // Elementwise templates run any chain: of floats gelu(x) + another tensor, of the rest x +
  // another one; then a cast where the dtypes differ.
  void add_copy(const PatternStep& step) {
    const int x = input(step.inputs.front(), {});
    const graph::Value of = graph::value_at(ir_, x);
    int value = x;
    if (is_floating(of.dtype)) {
      value = with_epilogue(x);
    }
    const DType dtype = dtype_of(*contract_.find_port(step.outputs.front()));
    if (dtype != of.dtype || value == x) {
      value = graph::append_one(ir_, {.kind = OpKind::Cast,
                                      .inputs = {value},
                                      .outputs = {-1},
                                      .attributes = {{"dtype", dtype}}});
    }
    values_[step.outputs.front()] = value;
    made_[step.outputs.front()] = value;
  }

  struct Reader {
    const graph::Operator* op = nullptr;
    std::size_t place = 0;
  };

  // The value of a name: made by a step before, or a port.
  int input(const std::string& name, const Reader& reader) {
    if (const auto known = values_.find(name); known != values_.end()) {
      return known->second;
    }
    const Port* port = contract_.find_port(name);
    if (port == nullptr || port->is_output) {
      throw GraphError(fmt::format("pattern: '{}' is read before a step gives it", name));
    }
    return values_[name] = add_input(*port, reader);
  }

  int add_input(const Port& port, const Reader& reader) {
    Extents extents = extents_of(port);
    if (reader.op != nullptr && reader.op->kind == OpKind::MatMul) {
      if (extents.size() == 3 && extents.front() == 1) {
        extents.erase(extents.begin());
      }
      const char* attribute = reader.place == 0 ? "transpose_a" : "transpose_b";
      if (extents.size() >= 2 && graph::attribute<bool>(*reader.op, attribute)) {
        std::swap(extents.end()[-1], extents.end()[-2]);
      }
    }
    const bool is_other = takes_strides(contract_, port) && extents.size() >= 2;
    const bool is_swapped = is_other && use_.is_transposed;
    if (is_swapped) {
      std::swap(extents.end()[-1], extents.end()[-2]);
    }
    const bool is_part = is_other && use_.is_strided;
    Extents whole = extents;
    whole.back() += is_part ? kStrideBefore + kStrideBehind : 0;
    int value = graph::append_value(ir_, {.name = port.name,
                                          .shape = Shape::of(whole),
                                          .dtype = dtype_of(port),
                                          .role = graph::ValueRole::Input});
    if (is_part) {
      const auto axis = static_cast<std::int64_t>(extents.size()) - 1;
      value = graph::append_one(ir_, {.kind = OpKind::Slice,
                                      .inputs = {value},
                                      .outputs = {-1},
                                      .attributes = {{"axis", axis},
                                                     {"start", Dim(kStrideBefore)},
                                                     {"length", Dim(extents.back())}}});
    }
    if (is_swapped) {
      std::vector<std::int64_t> permutation;
      for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        permutation.push_back(static_cast<std::int64_t>(axis));
      }
      std::swap(permutation.end()[-1], permutation.end()[-2]);
      value = graph::append_one(ir_, {.kind = OpKind::Transpose,
                                      .inputs = {value},
                                      .outputs = {-1},
                                      .attributes = {{"permutation", permutation}}});
    }
    return value;
  }

  DType dtype_of(const Port& port) const {
    const auto symbol = use_.dtypes.find(port.dtype);
    return symbol != use_.dtypes.end() ? symbol->second
                                       : dtype_from_name(port.dtype).value_or(DType::Float32);
  }

  Extents extents_of(const Port& port) const {
    expr::Bindings scalars;
    for (const auto& [name, value] : use_.dims) {
      scalars.emplace("dim." + name, value);
    }
    for (const PatternAttribute& attribute : free_attributes(contract_)) {
      const double value = use_.attributes.at(attribute.name);
      scalars.emplace("attr." + attribute.name,
                      attribute.type == ScalarType::Float
                          ? expr::Value(value)
                          : expr::Value(static_cast<std::int64_t>(value)));
    }
    Extents extents;
    for (const contract::Extent& extent : port.shape) {
      if (!extent.dim.empty() && !use_.dims.contains(extent.dim)) {
        throw GraphError(fmt::format("\"tests\" gives no value to dim {}", extent.dim));
      }
      extents.push_back(extent.dim.empty() ? expr::evaluate_integer(extent.value, scalars)
                                           : use_.dims.at(extent.dim));
    }
    return extents;
  }

  std::optional<double> said(const PatternStep& step, std::string_view name) const {
    const auto found = std::ranges::find(step.attributes, name, &PatternAttribute::name);
    if (found == step.attributes.end()) {
      return std::nullopt;
    }
    return found->value ? found->value : std::optional(use_.attributes.at(found->name));
  }

  // Attributes that do not depend on the shapes of inputs.
  void add_plain_attributes(graph::Operator& op, const PatternStep& step) const {
    for (const graph::AttributeInfo& info : graph::op_info(op.kind).attributes) {
      const std::string name(info.name);
      const std::optional<double> value = said(step, info.name);
      if (info.is_optional && !value) {
        continue;
      }
      switch (info.type) {
        case graph::AttributeType::Bool:
          op.attributes[name] = value.value_or(0) != 0;
          break;
        case graph::AttributeType::Int:
          op.attributes[name] = static_cast<std::int64_t>(value.value_or(0));
          break;
        case graph::AttributeType::Float:
          op.attributes[name] = value.value_or(kFactor);
          break;
        case graph::AttributeType::DType:
          op.attributes[name] = dtype_of_result(step);
          break;
        default:
          break;
      }
    }
    if (op.kind == OpKind::Rotary || op.kind == OpKind::RotaryHeads) {
      const bool is_interleaved = said(step, "interleaved").value_or(0) != 0;
      op.attributes["style"] =
          std::string(graph::name(is_interleaved ? RotaryStyle::Interleaved : RotaryStyle::Half));
    }
    if (op.kind == OpKind::Attention && !use_.mask.is_full()) {
      op.attributes["mask"] = use_.mask;
    }
  }

  // Patterns count axes from the innermost, -1.
  void add_shaped_attributes(graph::Operator& op, const PatternStep& step) const {
    if (!op.attributes.contains("axis")) {
      return;
    }
    const std::int64_t rank = graph::value_at(ir_, op.inputs[0]).shape.rank();
    const std::optional<double> axis = said(step, "axis");
    // Reductions come as [outer, axis, inner].
    const std::int64_t middle = is_reduction(op.kind) && rank == 3 ? 1 : rank - 1;
    op.attributes["axis"] = axis ? rank + static_cast<std::int64_t>(*axis) : middle;
  }

  DType dtype_of_result(const PatternStep& step) const {
    const Port* port = contract_.find_port(step.outputs.front());
    return port == nullptr ? DType::Float32 : dtype_of(*port);
  }

  const TemplateContract& contract_;
  const PatternUse& use_;
  graph::Ir ir_;
  std::map<std::string, int> values_;
  bool is_wide_ = false;             // sums of 16 bits are float32
  std::map<std::string, int> made_;  // by steps: what an output port of that name gives
};

}  // namespace

graph::Ir pattern_graph(const TemplateContract& contract, const PatternUse& use) {
  return Builder(contract, use).run();
}

bool takes_strides(const TemplateContract& contract, const Port& port) {
  return !port.is_output && std::ranges::any_of(port.shape, [&](const contract::Extent& extent) {
    return !extent.dim.empty() &&
           contract.reads(fmt::format("stride.{}.{}", port.name, extent.dim));
  });
}

std::vector<PatternAttribute> free_attributes(const TemplateContract& contract) {
  std::vector<PatternAttribute> attributes;
  for (const PatternStep& step : contract.pattern) {
    for (const PatternAttribute& attribute : step.attributes) {
      if (!attribute.value && std::ranges::find(attributes, attribute.name,
                                                &PatternAttribute::name) == attributes.end()) {
        attributes.push_back(attribute);
      }
    }
  }
  return attributes;
}

}  // namespace stof::validate
