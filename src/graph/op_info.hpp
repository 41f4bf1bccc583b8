#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.hpp"
#include "graph/ir.hpp"

// The one naming table: JSON, the text dump, template patterns, shape inference and the reference
// backend speak of operators in these names, and in the sense of their `meaning`.
namespace stof::graph {

enum class OpClass : std::uint8_t { ComputeIntensive, MemoryIntensive, View };

// In the order of the alternatives of Attribute.
enum class AttributeType : std::uint8_t {
  Bool,
  Int,
  Float,
  String,
  Ints,
  DType,
  Dim,
  Shape,
  Mask,
  Expr,
};

struct InputInfo {
  std::string_view name;
  bool is_optional = false;
};

// A required attribute is always there; an optional one that is absent means "none".
struct AttributeInfo {
  std::string_view name;
  AttributeType type = AttributeType::Bool;
  bool is_optional = false;
};

struct OpInfo {
  OpKind kind = OpKind::Add;
  std::string_view name;  // snake_case
  OpClass op_class = OpClass::MemoryIntensive;
  bool is_composite = false;  // normalise() takes it apart
  bool is_variadic = false;   // the last input may come any number of times
  std::vector<InputInfo> inputs = {};
  std::vector<AttributeInfo> attributes = {};  // in the order in which they are printed
  int max_outputs = 1;
  std::string_view meaning;

  int min_inputs() const;
  const AttributeInfo* attribute(std::string_view attribute_name) const;  // nullptr: has none such
};

// Every operator, in the order of OpKind.
std::span<const OpInfo> all_ops();
// The name of an operator that is nearest to a misspelt one; empty where none is near.
std::string nearest_op_name(std::string_view name);
const OpInfo& op_info(OpKind kind);
std::string_view name(OpKind kind);
std::optional<OpKind> op_kind_from_name(std::string_view name);

// "bool", "integer", "number", … as in error messages.
std::string_view name(AttributeType type);

// As JSON and the attributes "mask_form" and "style" spell them.
std::string_view name(ValueRole role);
std::optional<ValueRole> role_from_name(std::string_view name);
std::string_view name(WeightLayout layout);
std::optional<WeightLayout> layout_from_name(std::string_view name);
std::string_view name(MaskForm form);
std::optional<MaskForm> mask_form_from_name(std::string_view name);
std::string_view name(RotaryStyle style);
std::optional<RotaryStyle> rotary_style_from_name(std::string_view name);

// nullptr where the operator lacks it; InternalError where it is of another type.
template <typename T>
const T* find_attribute(const Operator& op, std::string_view attribute_name) {
  const auto found = op.attributes.find(std::string(attribute_name));
  if (found == op.attributes.end()) {
    return nullptr;
  }
  const T* value = std::get_if<T>(&found->second);
  STOF_CHECK(value != nullptr) << name(op.kind) << ": " << attribute_name << " is of another type";
  return value;
}

// InternalError where the operator lacks it too.
template <typename T>
const T& attribute(const Operator& op, std::string_view attribute_name) {
  const T* value = find_attribute<T>(op, attribute_name);
  STOF_CHECK(value != nullptr) << name(op.kind) << ": " << attribute_name << " is missing";
  return *value;
}

// The value at an input, -1 where the operator has none there.
int input_or_none(const Operator& op, int position);

// The extents that stand in its attributes.
std::vector<Dim> attribute_extents(const Operator& op);

}  // namespace stof::graph
