#include "fusion/variables.hpp"

#include <cstddef>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/check.hpp"
#include "fusion/cuda_type.hpp"
#include "graph/op_info.hpp"

namespace stof::fusion {

namespace {

using nlohmann::json;

// A number as the operator has it: "value" of scale and shift, "dtype" of cast.
void add_attribute(json& statement, const graph::Operator& op) {
  if (op.kind == graph::OpKind::Scale) {
    statement["value"] = graph::attribute<double>(op, "factor");
  } else if (op.kind == graph::OpKind::Shift) {
    statement["value"] = graph::attribute<double>(op, "addend");
  } else if (op.kind == graph::OpKind::Cast) {
    statement["dtype"] = cuda_type(graph::attribute<DType>(op, "dtype"));
  }
}

// Copies cast by themselves, and integers to integers exactly.
bool is_cast_by_copy(const Use& use, const Chain& chain, const graph::Ir& ir) {
  return use.kernel->contract.pattern.front().op == "copy" && chain.statements.size() == 1 &&
         ir.operators[static_cast<std::size_t>(chain.statements[0].op)].kind == graph::OpKind::Cast;
}

json hook_of(const Use& use, const Chain& chain, const graph::Ir& ir) {
  json hook = {{"value", "x0"}, {"tensors", json::array()}, {"statements", json::array()}};
  if (is_cast_by_copy(use, chain, ir)) {
    hook["result"] = "x0";
    return hook;
  }
  std::map<int, std::string> names = {{chain.value, "x0"}};
  for (const HookTensor& tensor : use.hook) {
    const std::string name = fmt::format("t{}", names.size() - 1);
    names.emplace(tensor.value, name);
    json per = json::array();
    for (std::size_t axis = 0; axis < tensor.view.extents.size(); ++axis) {
      per.push_back(tensor.view.extents[axis] != 1 && tensor.view.strides[axis] != 0);
    }
    hook["tensors"].push_back(
        {{"name", name}, {"dtype", cuda_type(tensor.view.dtype)}, {"per", per}});
  }
  std::string result = "x0";
  for (const Statement& statement : chain.statements) {
    const graph::Operator& op = ir.operators[static_cast<std::size_t>(statement.op)];
    json inputs = json::array();
    for (const int operand : statement.operands) {
      inputs.push_back(names.at(operand));
    }
    result = fmt::format("x{}", hook["statements"].size() + 1);
    json step = {{"result", result}, {"op", graph::name(op.kind)}, {"inputs", inputs}};
    add_attribute(step, op);
    hook["statements"].push_back(std::move(step));
    names.emplace(statement.result, result);
  }
  hook["result"] = result;
  return hook;
}

json baked_attributes(const contract::TemplateContract& contract,
                      const contract::ContractScope& scope) {
  json baked = json::object();
  for (const contract::PatternStep& step : contract.pattern) {
    for (const contract::PatternAttribute& attribute : step.attributes) {
      const auto value = scope.attributes.find(attribute.name);
      if (attribute.value || value == scope.attributes.end() ||
          contract.is_passed("attr." + attribute.name)) {
        continue;
      }
      if (attribute.type == ScalarType::Bool) {
        baked[attribute.name] = value->second != 0;
      } else if (attribute.type == ScalarType::Int) {
        baked[attribute.name] = static_cast<std::int64_t>(value->second);
      } else {
        baked[attribute.name] = value->second;
      }
    }
  }
  return baked;
}

// The operators of steps that have alternatives, by what they make.
json operators(const contract::TemplateContract& contract, const contract::ContractScope& scope) {
  json names = json::object();
  for (const contract::PatternStep& step : contract.pattern) {
    if (!step.alternatives.empty()) {
      const auto other = scope.operators.find(step.outputs[0]);
      names[step.outputs[0]] = other == scope.operators.end() ? step.op : other->second;
    }
  }
  return names;
}

}  // namespace

json scope_variables(const contract::TemplateContract& contract,
                     const contract::ContractScope& scope, const std::set<std::string>& present) {
  json all = {{"kernel", contract.name},
              {"dim", json::object()},
              {"attr", baked_attributes(contract, scope)},
              {"op", operators(contract, scope)},
              {"param", scope.config},
              {"dtype", json::object()},
              {"size", json::object()},
              {"device", json::object()},
              {"has", json::object()},
              {"hook", json::object()}};
  for (const auto& [name, value] : scope.dims) {
    if (!contract.is_passed("dim." + name)) {
      all["dim"][name] = value;
    }
  }
  for (const auto& [symbol, dtype] : scope.dtypes) {
    all["dtype"][symbol] = cuda_type(dtype);
    all["size"][symbol] = size_bytes(dtype);
  }
  // What a kernel may be written for; more would make it another kernel on each device.
  for (const char* scalar : {"sm", "shared_bytes_per_block"}) {
    all["device"][scalar] = scope.device.at(fmt::format("device.{}", scalar));
  }
  for (const contract::Port& port : contract.ports) {
    if (port.is_optional) {
      all["has"][port.name] = present.contains(port.name);
    }
  }
  return all;
}

json mask_variables(mask::MaskClass mask_class, const contract::ContractScope& scope) {
  return {{"class", mask::name(mask_class)}, {"has_long_tiles", scope.mask_long_tiles > 0}};
}

json variables(const Use& use, const Chain& chain, const graph::Ir& ir, const AttentionMask* mask) {
  const contract::TemplateContract& contract = use.kernel->contract;
  std::set<std::string> present;
  for (const auto& [port, view] : use.ports) {
    present.insert(port);
  }
  json all = scope_variables(contract, use.scope, present);
  for (const auto& [hook, value] : contract.hooks) {
    all["hook"][hook] = hook_of(use, chain, ir);
  }
  if (mask != nullptr) {
    all["mask"] = mask_variables(mask->features().mask_class, use.scope);
    all["mod"] = mask->modifier.variables();
  }
  return all;
}

}  // namespace stof::fusion
